package wire

import "encoding/binary"

const (
	flagFIN = 0x01
	flagPSH = 0x08
	flagCWR = 0x80

	tcpSeq, tcpFlags = 4, 13
	ipv4Len, ipv4ID  = 2, 4
	ipv6PayloadLen   = 4
	udpLength        = 4
)

// MaxHeaderLen bounds the headers that a train may have in bytes: two VLAN
// tags, IPv6 with extensions, TCP with options.
const MaxHeaderLen = 256

// maxSegments is more than any kernel makes of one train.
const maxSegments = 1<<16 - 1

// Train is a frame as the kernel's offloads hand it over: the headers once,
// then the payload of Segments wire packets. An ordinary packet is a train of
// one.
type Train struct {
	VNet
	Headers   Headers
	Length    int // of the frame in bytes
	HeaderLen int // bytes repeated on every segment; 0 when not segmented
	Segments  int // at least 1
}

// NewTrain describes the frame of length bytes that begins with head (which
// holds at least all its headers) and came with v. What is no consistent train
// of TCP or UDP is one segment.
func NewTrain(v VNet, head []byte, length int) Train {
	t := Train{VNet: v, Length: length, Segments: 1}
	if v.GSOType == GSONone || v.GSOSize == 0 {
		return t
	}
	t.Headers = Parse(head)
	h := &t.Headers
	var fits bool
	switch v.GSOType &^ GSOECN {
	case GSOTCPv4:
		fits = h.Version == 4 && h.Proto == ProtoTCP
	case GSOTCPv6:
		fits = h.Version == 6 && h.Proto == ProtoTCP
	case GSOUDP:
		fits = h.Proto == ProtoUDP
	}
	payload := length - h.Payload
	if !fits || h.Payload == 0 || h.Fragment || h.Payload > MaxHeaderLen || payload <= int(v.GSOSize) {
		return t
	}
	if payload > maxSegments*int(v.GSOSize) {
		return t
	}
	t.HeaderLen = h.Payload
	t.Segments = (payload + int(v.GSOSize) - 1) / int(v.GSOSize)
	return t
}

// WireLen is the length in bytes of segment i as an Ethernet frame.
func (t *Train) WireLen(i int) int {
	if t.HeaderLen == 0 {
		return t.Length
	}
	from, to := t.Payload(i, 1)
	return t.HeaderLen + to - from
}

// WireBytes is the sum of all segments' lengths.
func (t *Train) WireBytes() int { return t.Length + (t.Segments-1)*t.HeaderLen }

// Payload is where the payload of n segments from the first-th lies in the
// frame: from (included) to (excluded), in bytes.
func (t *Train) Payload(first, n int) (from, to int) {
	from = t.HeaderLen + first*int(t.GSOSize)
	return from, min(from+n*int(t.GSOSize), t.Length)
}

// Rebuild writes to dst the virtio header and the packet headers of the run of
// n segments that begins with the first-th, and returns the bytes written
// (VNetLen + HeaderLen). frame begins with the headers of the train. The run
// must not be empty and the train be segmented (HeaderLen > 0).
//
// Every segment gets the headers that the kernel's own segmentation would give
// it: the lengths and the IPv4 identification advance, FIN and PSH stay on the
// last segment only, CWR on the first only, and the checksum field holds the
// pseudo-header's sum with the new length.
func (t *Train) Rebuild(dst, frame []byte, first, n int) int {
	from, to := t.Payload(first, n)
	size := t.HeaderLen + to - from
	v := VNet{
		Flags:          FlagNeedsChecksum,
		ChecksumStart:  uint16(t.Headers.L4),
		ChecksumOffset: uint16(t.Headers.checksumOffset()),
	}
	if n > 1 {
		v.GSOType, v.GSOSize, v.HeaderLen = t.GSOType, t.GSOSize, uint16(t.HeaderLen)
		if first > 0 {
			v.GSOType &^= GSOECN // only the first segment bears CWR
		}
	}
	v.Encode(dst)
	b := dst[VNetLen : VNetLen+t.HeaderLen]
	copy(b, frame)
	t.rebuildIP(b, size, first)
	t.rebuildTransport(b, size, first, first+n == t.Segments)
	return VNetLen + t.HeaderLen
}

func (t *Train) rebuildIP(b []byte, size, first int) {
	ip := b[t.Headers.L3:]
	if t.Headers.Version == 6 {
		binary.BigEndian.PutUint16(ip[ipv6PayloadLen:], uint16(size-t.Headers.L3-ipv6Len))
		return
	}
	binary.BigEndian.PutUint16(ip[ipv4Len:], uint16(size-t.Headers.L3))
	id := binary.BigEndian.Uint16(ip[ipv4ID:])
	binary.BigEndian.PutUint16(ip[ipv4ID:], id+uint16(first))
	SetIPv4Checksum(ip)
}

func (t *Train) rebuildTransport(b []byte, size, first int, last bool) {
	h := &t.Headers
	l4 := b[h.L4:]
	length := size - h.L4
	if h.Proto == ProtoUDP {
		binary.BigEndian.PutUint16(l4[udpLength:], uint16(length))
	} else {
		seq := binary.BigEndian.Uint32(l4[tcpSeq:])
		binary.BigEndian.PutUint32(l4[tcpSeq:], seq+uint32(first)*uint32(t.GSOSize))
		if !last {
			l4[tcpFlags] &^= flagFIN | flagPSH
		}
		if first > 0 {
			l4[tcpFlags] &^= flagCWR
		}
	}
	field := l4[h.checksumOffset():]
	var seed Sum
	if t.Flags&FlagNeedsChecksum != 0 {
		// Only the length has changed: exchanging it in the given sum keeps
		// what a routing header has put in place of an address.
		old := t.Length - h.L4
		seed = Sum(binary.BigEndian.Uint16(field)).
			Word(^uint16(old)).Word(^uint16(old >> 16)).
			Word(uint16(length)).Word(uint16(length >> 16))
	} else {
		seed = h.PseudoHeader(b, length)
	}
	binary.BigEndian.PutUint16(field, seed.Fold())
}
