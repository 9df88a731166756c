package probe

import "encoding/binary"

// The ICMP types of an echo (RFC 792, RFC 4443).
const (
	echoRequest4, echoReply4 = 8, 0
	echoRequest6, echoReply6 = 128, 129
)

const (
	icmpHeader = 8
	// tagSize is the part of the payload that tells our packets: a token of the
	// workload, and the request's number, which ICMP's own 16 bits cannot hold.
	tagSize = 16
)

// echo builds the requests of one pinger and knows its replies.
type echo struct {
	version int
	id      uint16
	token   uint64
	// kernelID is set when the kernel chose the identifier (a ping socket).
	kernelID bool
}

// fill writes request number seq into packet: header and payload of ICMP.
func (e *echo) fill(packet []byte, seq uint64) {
	packet[0], packet[1], packet[2], packet[3] = echoRequest4, 0, 0, 0
	if e.version == 6 {
		packet[0] = echoRequest6
	}
	binary.BigEndian.PutUint16(packet[4:], e.id)
	binary.BigEndian.PutUint16(packet[6:], uint16(seq))
	binary.BigEndian.PutUint64(packet[icmpHeader:], e.token)
	binary.BigEndian.PutUint64(packet[icmpHeader+8:], seq)
	if e.version == 4 { // ICMPv6 sockets compute their checksum in the kernel
		binary.BigEndian.PutUint16(packet[2:], checksum(packet))
	}
}

// parse returns the request number of a reply of ours; packet begins with the
// ICMP header.
func (e *echo) parse(packet []byte) (uint64, bool) {
	if len(packet) < icmpHeader+tagSize || packet[1] != 0 {
		return 0, false
	}
	if e.version == 4 && packet[0] != echoReply4 || e.version == 6 && packet[0] != echoReply6 {
		return 0, false
	}
	if !e.kernelID && binary.BigEndian.Uint16(packet[4:]) != e.id || binary.BigEndian.Uint64(packet[icmpHeader:]) != e.token {
		return 0, false
	}
	return binary.BigEndian.Uint64(packet[icmpHeader+8:]), true
}

// stripIPv4 cuts off the IPv4 header that a raw socket delivers.
func stripIPv4(packet []byte) []byte {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return nil
	}
	n := int(packet[0]&0xf) * 4
	if n < 20 || n > len(packet) {
		return nil
	}
	return packet[n:]
}

// checksum is the Internet checksum (RFC 1071) of b, whose own checksum field
// is zero.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) > 1; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
