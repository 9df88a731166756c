package wire

import (
	"fmt"
	"math"
	"math/bits"
)

// options calls fn for each option until their end, or until they make no
// sense (they are only ornaments).
func (p *PcapReader) options(b []byte, fn func(code uint16, value []byte)) {
	for len(b) >= 4 {
		code, n := p.order.Uint16(b), int(p.order.Uint16(b[2:]))
		b = b[4:]
		if code == optEnd || n > len(b) {
			return
		}
		fn(code, b[:n])
		b = b[min(n+(-n&3), len(b)):]
	}
}

func (p *PcapReader) addInterface(b []byte) error {
	if len(b) < 8 {
		return p.broken("an interface description that is too short", nil)
	}
	i := PcapInterface{LinkType: p.order.Uint16(b), SnapLen: p.order.Uint32(b[4:]), ticks: 1e6}
	p.options(b[8:], func(code uint16, v []byte) {
		switch {
		case code == optInterfaceName:
			i.Name = string(v)
		case code == optInterfaceText:
			i.Description = string(v)
		case code == optInterfaceTicks && len(v) == 1:
			i.ticks = ticksPerSecond(v[0])
		case code == optInterfaceShift && len(v) == 8:
			i.offset = int64(p.order.Uint64(v))
		}
	})
	if i.ticks == 0 {
		return p.broken("an interface with a time resolution that does not fit", nil)
	}
	p.interfaces = append(p.interfaces, i)
	return nil
}

// ticksPerSecond reads if_tsresol: a power of 10, or of 2 with the top bit
// set; 0 if it does not fit 64 bits.
func ticksPerSecond(v byte) uint64 {
	if n := v & 0x7f; v&0x80 != 0 {
		if n > 63 {
			return 0
		}
		return 1 << n
	}
	if v > 19 {
		return 0
	}
	ticks := uint64(1)
	for range v {
		ticks *= 10
	}
	return ticks
}

// nanoseconds converts a timestamp of the interface; what does not fit
// saturates.
func (i *PcapInterface) nanoseconds(t uint64) int64 {
	seconds, rest := t/i.ticks, t%i.ticks
	high, low := bits.Mul64(rest, 1e9)
	fraction, _ := bits.Div64(high, low, i.ticks)
	const most = math.MaxInt64 / 2_000_000_000
	if seconds > most || i.offset > most || i.offset < -most {
		return math.MaxInt64
	}
	return (int64(seconds)+i.offset)*1e9 + int64(fraction)
}

func (p *PcapReader) iface(number uint32) (*PcapInterface, int, error) {
	index := p.base + int(number)
	if index >= len(p.interfaces) {
		return nil, 0, p.broken(fmt.Sprintf("interface %d is not described", number), nil)
	}
	return &p.interfaces[index], index, nil
}

// packet reads the three kinds of packet block.
func (p *PcapReader) packet(kind uint32, b []byte) (PcapPacket, error) {
	fixed, number := 20, uint32(0)
	if kind == blockSimple {
		fixed = 4
	}
	if len(b) < fixed {
		return PcapPacket{}, p.broken("a packet block that is too short", nil)
	}
	switch kind {
	case blockEnhanced:
		number = p.order.Uint32(b)
	case blockPacketOld:
		number = uint32(p.order.Uint16(b))
	}
	i, index, err := p.iface(number)
	if err != nil {
		return PcapPacket{}, err
	}
	pkt := PcapPacket{Interface: index}
	var kept uint32
	if kind == blockSimple {
		length := p.order.Uint32(b)
		pkt.Length, kept = int(length), length
		if i.SnapLen > 0 {
			kept = min(kept, i.SnapLen)
		}
		kept = min(kept, uint32(len(b)-fixed))
	} else {
		pkt.Time = i.nanoseconds(uint64(p.order.Uint32(b[4:]))<<32 | uint64(p.order.Uint32(b[8:])))
		kept, pkt.Length = p.order.Uint32(b[12:]), int(p.order.Uint32(b[16:]))
	}
	rest := b[fixed:]
	if uint64(kept) > uint64(len(rest)) {
		return PcapPacket{}, p.broken(fmt.Sprintf("a packet of %d bytes in a block of %d", kept, len(b)), nil)
	}
	pkt.Data = rest[:kept:kept]
	if kind != blockSimple {
		p.options(rest[min(int(kept)+(-int(kept)&3), len(rest)):], func(code uint16, v []byte) {
			if code == optPacketFlags && len(v) == 4 {
				pkt.Flags = PcapFlags(p.order.Uint32(v))
			}
		})
	}
	return pkt, nil
}

func (p *PcapReader) statistics(b []byte) error {
	if len(b) < 12 {
		return p.broken("interface statistics that are too short", nil)
	}
	i, _, err := p.iface(p.order.Uint32(b))
	if err != nil {
		return err
	}
	s := &PcapStats{}
	p.options(b[12:], func(code uint16, v []byte) {
		if len(v) != 8 {
			return
		}
		stamp := func() int64 {
			return i.nanoseconds(uint64(p.order.Uint32(v))<<32 | uint64(p.order.Uint32(v[4:])))
		}
		switch code {
		case optStatsStart:
			s.Start = stamp()
		case optStatsEnd:
			s.End = stamp()
		case optStatsReceived:
			s.Received = p.order.Uint64(v)
		case optStatsDropped:
			s.Dropped = p.order.Uint64(v)
		}
	})
	i.Stats = s
	return nil
}
