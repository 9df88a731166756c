package wire_test

import (
	"encoding/binary"

	"wirelab/emul/wire"
)

// super describes a frame to be made.
type super struct {
	v6, udp   bool
	vlans     int
	options   int // bytes of TCP options
	extension bool
	payload   int
	gso       int
	flags     byte // of TCP
	ident     uint16
	seq       uint32
	ecn       bool
	partial   bool // the checksum is left to the device
}

// make builds the frame with its virtio header as the kernel hands it over.
func (s super) make() (wire.VNet, []byte) {
	b := make([]byte, 12, 70000)
	for i := range b {
		b[i] = byte(i)
	}
	for i := range s.vlans {
		b = binary.BigEndian.AppendUint16(b, 0x8100)
		b = binary.BigEndian.AppendUint16(b, uint16(100+i))
	}
	proto, l4 := byte(wire.ProtoTCP), 20+s.options
	if s.udp {
		proto, l4 = wire.ProtoUDP, 8
	}
	if s.v6 {
		b = s.ipv6(b, proto, l4)
	} else {
		b = s.ipv4(b, proto, l4)
	}
	at := len(b)
	if s.udp {
		b = append(b, 0x12, 0x34, 0x56, 0x78)
		b = binary.BigEndian.AppendUint16(b, uint16(l4+s.payload))
		b = append(b, 0, 0)
	} else {
		b = append(b, 0x12, 0x34, 0x56, 0x78)
		b = binary.BigEndian.AppendUint32(b, s.seq)
		b = append(b, 9, 9, 9, 9, byte(l4/4)<<4, s.flags, 0x11, 0x22, 0, 0, 0, 0)
		for i := range s.options {
			b = append(b, byte(i))
		}
	}
	for i := range s.payload {
		b = append(b, byte(i*7+i>>8))
	}
	v := wire.VNet{GSOSize: uint16(s.gso), HeaderLen: uint16(at + l4), GSOType: s.gsoType()}
	s.checksum(b, at, &v)
	return v, b
}

func (s super) gsoType() uint8 {
	t := uint8(wire.GSOTCPv4)
	switch {
	case s.gso == 0:
		return wire.GSONone
	case s.udp:
		t = wire.GSOUDP
	case s.v6:
		t = wire.GSOTCPv6
	}
	if s.ecn {
		t |= wire.GSOECN
	}
	return t
}

func (s super) ipv4(b []byte, proto byte, l4 int) []byte {
	b = append(b, 0x08, 0x00)
	at := len(b)
	b = append(b, 0x45, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(20+l4+s.payload))
	b = binary.BigEndian.AppendUint16(b, s.ident)
	b = append(b, 0x40, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2)
	wire.SetIPv4Checksum(b[at:])
	return b
}

func (s super) ipv6(b []byte, proto byte, l4 int) []byte {
	b = append(b, 0x86, 0xdd, 0x60, 0, 0, 0)
	length, next := l4+s.payload, proto
	if s.extension {
		length, next = length+8, 60
	}
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = append(b, next, 64)
	for i := range 32 {
		b = append(b, byte(0xf0+i))
	}
	if s.extension {
		b = append(b, proto, 0, 1, 4, 0, 0, 0, 0)
	}
	return b
}

// checksum completes the transport checksum, or leaves its seed.
func (s super) checksum(b []byte, at int, v *wire.VNet) {
	h := wire.Parse(b)
	offset := 16
	if s.udp {
		offset = 6
	}
	field := b[at+offset:]
	if !s.partial {
		sum, _ := h.TransportChecksum(b)
		binary.BigEndian.PutUint16(field, sum)
		return
	}
	v.Flags, v.ChecksumStart, v.ChecksumOffset = wire.FlagNeedsChecksum, uint16(at), uint16(offset)
	binary.BigEndian.PutUint16(field, h.PseudoHeader(b, len(b)-at).Fold())
}

// finish does what a device does with a checksum left to it.
func finish(v wire.VNet, b []byte) {
	if v.Flags&wire.FlagNeedsChecksum == 0 {
		return
	}
	sum := ^wire.Sum(0).Add(b[v.ChecksumStart:]).Fold()
	binary.BigEndian.PutUint16(b[v.ChecksumStart+v.ChecksumOffset:], sum)
}

// rebuild makes the run of segments as one frame.
func rebuild(t *wire.Train, frame []byte, first, n int) (wire.VNet, []byte) {
	var dst [wire.VNetLen + wire.MaxHeaderLen]byte
	k := t.Rebuild(dst[:], frame, first, n)
	var v wire.VNet
	v.Decode(dst[:])
	from, to := t.Payload(first, n)
	return v, append(append([]byte{}, dst[wire.VNetLen:k]...), frame[from:to]...)
}
