// Package wire reads and rebuilds packets as they are on a link: Ethernet,
// VLAN, IPv4, IPv6, TCP and UDP headers, their checksums, the virtio header
// that goes with a packet socket, and capture files.
//
// Its centre is the [Train]: one buffer of the kernel's segmentation offload
// that stands for many packets on the wire. A train is segmented logically,
// by arithmetic on offsets: [Train.WireLen] gives the length of each wire
// segment, and [Train.Rebuild] makes the headers of any run of consecutive
// segments, so that the run leaves as one shorter train while its payload
// stays where it is. Nothing here keeps state, allocates, or trusts a length
// field: a malformed frame is one opaque segment.
package wire

import "encoding/binary"

// Lengths of headers in bytes.
const (
	EthernetLen = 14
	VLANLen     = 4
)

// EtherTypes (IEEE 802).
const (
	EtherTypeIPv4 = 0x0800
	EtherTypeARP  = 0x0806
	EtherTypeVLAN = 0x8100
	EtherTypeIPv6 = 0x86dd
	EtherTypeQinQ = 0x88a8
)

// Protocol numbers (IANA).
const (
	ProtoTCP    = 6
	ProtoUDP    = 17
	ProtoICMPv6 = 58
)

const (
	protoHopByHop = 0
	protoRouting  = 43
	protoFragment = 44
	protoDstOpts  = 60

	minIPv4Len = 20
	ipv6Len    = 40
	minTCPLen  = 20
	udpLen     = 8

	maxVLANs      = 2
	maxExtensions = 8
)

// Headers says where the headers of a frame are. Offsets are in bytes from
// the start of the frame; zero means absent.
type Headers struct {
	EtherType uint16 // of the network layer, after any VLAN tags
	L3        int    // the IP header
	L4        int    // the transport header of a first or only fragment
	Payload   int    // what follows a TCP or UDP header
	Version   uint8  // 4, 6, or 0 for anything but IP
	Proto     uint8  // protocol number of the transport header
	Fragment  bool   // the IP packet is a fragment
}

// Parse finds the headers of an Ethernet frame. It goes as far as the bytes
// allow and leaves the rest zero.
func Parse(b []byte) Headers {
	var h Headers
	if len(b) < EthernetLen {
		return h
	}
	at := EthernetLen
	h.EtherType = binary.BigEndian.Uint16(b[12:])
	for range maxVLANs {
		if h.EtherType != EtherTypeVLAN && h.EtherType != EtherTypeQinQ || len(b) < at+VLANLen {
			break
		}
		h.EtherType = binary.BigEndian.Uint16(b[at+2:])
		at += VLANLen
	}
	switch h.EtherType {
	case EtherTypeIPv4:
		h.ipv4(b, at)
	case EtherTypeIPv6:
		h.ipv6(b, at)
	}
	return h
}

func (h *Headers) ipv4(b []byte, at int) {
	if len(b) < at+minIPv4Len || b[at]>>4 != 4 {
		return
	}
	ihl := int(b[at]&15) * 4
	if ihl < minIPv4Len || len(b) < at+ihl {
		return
	}
	h.Version, h.L3, h.Proto = 4, at, b[at+9]
	frag := binary.BigEndian.Uint16(b[at+6:])
	h.Fragment = frag&0x3fff != 0 // more fragments, or an offset
	if frag&0x1fff == 0 {
		h.transport(b, at+ihl)
	}
}

func (h *Headers) ipv6(b []byte, at int) {
	if len(b) < at+ipv6Len || b[at]>>4 != 6 {
		return
	}
	h.Version, h.L3 = 6, at
	next := b[at+6]
	at += ipv6Len
	for range maxExtensions {
		switch next {
		case protoHopByHop, protoRouting, protoDstOpts:
			if len(b) < at+2 {
				return
			}
			next, at = b[at], at+8+int(b[at+1])*8
		case protoFragment:
			if len(b) < at+8 {
				return
			}
			h.Fragment = true
			offset := binary.BigEndian.Uint16(b[at+2:]) &^ 7
			next, at = b[at], at+8
			if offset != 0 {
				h.Proto = next
				return
			}
		default:
			h.Proto = next
			h.transport(b, at)
			return
		}
	}
}

func (h *Headers) transport(b []byte, at int) {
	if at >= len(b) {
		return
	}
	h.L4 = at
	switch h.Proto {
	case ProtoTCP:
		if len(b) < at+minTCPLen {
			return
		}
		if n := int(b[at+12]>>4) * 4; n >= minTCPLen && len(b) >= at+n {
			h.Payload = at + n
		}
	case ProtoUDP:
		if len(b) >= at+udpLen {
			h.Payload = at + udpLen
		}
	}
}

// Neighbour reports whether the frame resolves addresses: ARP, or IPv6 router
// and neighbour discovery (RFC 4861). Losing one stalls a flow for a second,
// so links exempt them from loss.
func Neighbour(b []byte) bool {
	if len(b) < EthernetLen {
		return false
	}
	at, typ := EthernetLen, binary.BigEndian.Uint16(b[12:])
	if (typ == EtherTypeVLAN || typ == EtherTypeQinQ) && len(b) >= at+VLANLen {
		typ, at = binary.BigEndian.Uint16(b[at+2:]), at+VLANLen
	}
	if typ == EtherTypeARP {
		return true
	}
	if typ != EtherTypeIPv6 || len(b) <= at+ipv6Len || b[at+6] != ProtoICMPv6 {
		return false
	}
	t := b[at+ipv6Len]
	return t >= 133 && t <= 137
}

// Flow names the two ends of a packet. Addresses of IPv4 take the first four
// bytes.
type Flow struct {
	Src, Dst         [16]byte
	SrcPort, DstPort uint16
	Version, Proto   uint8
}

// Flow reads the flow of frame b, whose headers h are. Ports are zero where
// there are none.
func (h *Headers) Flow(b []byte) Flow {
	f := Flow{Version: h.Version, Proto: h.Proto}
	switch h.Version {
	case 4:
		copy(f.Src[:4], b[h.L3+12:])
		copy(f.Dst[:4], b[h.L3+16:])
	case 6:
		copy(f.Src[:], b[h.L3+8:h.L3+24])
		copy(f.Dst[:], b[h.L3+24:h.L3+40])
	}
	if h.L4 > 0 && (h.Proto == ProtoTCP || h.Proto == ProtoUDP) && len(b) >= h.L4+4 {
		f.SrcPort = binary.BigEndian.Uint16(b[h.L4:])
		f.DstPort = binary.BigEndian.Uint16(b[h.L4+2:])
	}
	return f
}
