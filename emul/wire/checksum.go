package wire

import (
	"encoding/binary"
	"math/bits"
)

// Sum is the one's complement sum of 16-bit words (RFC 1071), not folded.
type Sum uint64

// Add adds the bytes of b, which begin at an even offset of the summed data.
func (s Sum) Add(b []byte) Sum {
	sum, carry := uint64(s), uint64(0)
	for len(b) >= 8 {
		sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	sum, carry = bits.Add64(sum, 0, carry)
	sum += carry
	var tail [8]byte
	copy(tail[:], b)
	sum, carry = bits.Add64(sum, binary.BigEndian.Uint64(tail[:]), 0)
	return Sum(sum + carry)
}

// Word adds one 16-bit number.
func (s Sum) Word(v uint16) Sum {
	sum, carry := bits.Add64(uint64(s), uint64(v), 0)
	return Sum(sum + carry)
}

// Fold returns the 16-bit sum, not complemented.
func (s Sum) Fold() uint16 {
	v := uint64(s)
	v = v>>32 + v&0xffffffff
	v = v>>32 + v&0xffffffff
	v = v>>16 + v&0xffff
	v = v>>16 + v&0xffff
	v = v>>16 + v&0xffff
	return uint16(v)
}

// Checksum is the Internet checksum of b (RFC 1071).
func Checksum(b []byte) uint16 { return ^Sum(0).Add(b).Fold() }

// PseudoHeader sums the addresses, the protocol and the length in bytes of
// the transport header and its payload (RFC 9293 §3.1, RFC 8200 §8.1).
func (h *Headers) PseudoHeader(b []byte, length int) Sum {
	var s Sum
	switch h.Version {
	case 4:
		s = s.Add(b[h.L3+12 : h.L3+20])
	case 6:
		s = s.Add(b[h.L3+8 : h.L3+40])
	}
	return s.Word(uint16(h.Proto)).Word(uint16(length >> 16)).Word(uint16(length))
}

// checksumOffset is where the transport checksum lies in its header.
func (h *Headers) checksumOffset() int {
	if h.Proto == ProtoUDP {
		return 6
	}
	return 16
}

// TransportChecksum computes the TCP or UDP checksum of the frame b, whose
// headers h are, over the whole of its IP packet; ok is false where there is
// no such header. The field itself counts as zero.
func (h *Headers) TransportChecksum(b []byte) (sum uint16, ok bool) {
	if h.Payload == 0 {
		return 0, false
	}
	at := h.L4 + h.checksumOffset()
	end := h.end(b)
	if end < h.Payload {
		return 0, false
	}
	s := h.PseudoHeader(b, end-h.L4).Add(b[h.L4:at]).Add(b[at+2 : end])
	sum = ^s.Fold()
	if sum == 0 && h.Proto == ProtoUDP {
		sum = 0xffff // zero means "no checksum" (RFC 768)
	}
	return sum, true
}

// end is where the IP packet ends: frames may be padded.
func (h *Headers) end(b []byte) int {
	n := len(b)
	switch h.Version {
	case 4:
		n = h.L3 + int(binary.BigEndian.Uint16(b[h.L3+2:]))
	case 6:
		n = h.L3 + ipv6Len + int(binary.BigEndian.Uint16(b[h.L3+4:]))
	}
	return min(n, len(b))
}

// SetIPv4Checksum computes the header checksum of the IPv4 header b.
func SetIPv4Checksum(b []byte) {
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], Checksum(b[:int(b[0]&15)*4]))
}
