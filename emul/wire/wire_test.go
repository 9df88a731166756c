package wire_test

import (
	"encoding/binary"
	"testing"

	"wirelab/emul/wire"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name string
		s    super
		want wire.Headers
	}{
		{"tcp4", super{payload: 5}, wire.Headers{EtherType: 0x800, L3: 14, L4: 34, Payload: 54, Version: 4, Proto: 6}},
		{"udp4", super{udp: true, payload: 5}, wire.Headers{EtherType: 0x800, L3: 14, L4: 34, Payload: 42, Version: 4, Proto: 17}},
		{"tcp6 options", super{v6: true, options: 12, payload: 5}, wire.Headers{EtherType: 0x86dd, L3: 14, L4: 54, Payload: 86, Version: 6, Proto: 6}},
		{"udp6 extension", super{v6: true, udp: true, extension: true}, wire.Headers{EtherType: 0x86dd, L3: 14, L4: 62, Payload: 70, Version: 6, Proto: 17}},
		{"one tag", super{vlans: 1}, wire.Headers{EtherType: 0x800, L3: 18, L4: 38, Payload: 58, Version: 4, Proto: 6}},
		{"two tags", super{vlans: 2, v6: true}, wire.Headers{EtherType: 0x86dd, L3: 22, L4: 62, Payload: 82, Version: 6, Proto: 6}},
	} {
		_, b := c.s.make()
		if got := wire.Parse(b); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		// Any beginning of a frame parses without harm.
		for n := range b {
			wire.Parse(b[:n])
		}
	}
}

func TestFragments(t *testing.T) {
	_, b := super{udp: true, payload: 100}.make()
	binary.BigEndian.PutUint16(b[14+6:], 0x2000) // the first one, more follow
	if h := wire.Parse(b); !h.Fragment || h.L4 == 0 {
		t.Errorf("first fragment: %+v", h)
	}
	binary.BigEndian.PutUint16(b[14+6:], 185)
	if h := wire.Parse(b); !h.Fragment || h.L4 != 0 || h.Proto != wire.ProtoUDP {
		t.Errorf("later fragment: %+v", h)
	}
}

func TestNeighbour(t *testing.T) {
	arp := make([]byte, 42)
	binary.BigEndian.PutUint16(arp[12:], wire.EtherTypeARP)
	tagged := make([]byte, 46)
	binary.BigEndian.PutUint16(tagged[12:], wire.EtherTypeVLAN)
	binary.BigEndian.PutUint16(tagged[16:], wire.EtherTypeARP)
	icmp6 := func(typ byte) []byte {
		b := make([]byte, 86)
		binary.BigEndian.PutUint16(b[12:], wire.EtherTypeIPv6)
		b[14], b[20], b[54] = 0x60, wire.ProtoICMPv6, typ
		return b
	}
	for name, b := range map[string][]byte{"arp": arp, "tagged arp": tagged, "solicitation": icmp6(135), "advertisement": icmp6(136)} {
		if !wire.Neighbour(b) {
			t.Errorf("%s is address resolution", name)
		}
	}
	_, tcp := super{payload: 10}.make()
	for name, b := range map[string][]byte{"echo": icmp6(128), "tcp": tcp, "empty": nil, "short": arp[:13]} {
		if wire.Neighbour(b) {
			t.Errorf("%s is no address resolution", name)
		}
	}
}

func TestFlow(t *testing.T) {
	_, b := super{payload: 1}.make()
	h := wire.Parse(b)
	f := h.Flow(b)
	if f.SrcPort != 0x1234 || f.DstPort != 0x5678 || f.Proto != 6 || [4]byte(f.Src[:4]) != [4]byte{10, 0, 0, 1} || [4]byte(f.Dst[:4]) != [4]byte{10, 0, 0, 2} {
		t.Errorf("%+v", f)
	}
}

// The example of RFC 1071 §3, and odd lengths.
func TestChecksum(t *testing.T) {
	b := []byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}
	if got := wire.Sum(0).Add(b).Fold(); got != 0xddf2 {
		t.Errorf("sum %04x, want ddf2", got)
	}
	if got, want := wire.Sum(0).Add([]byte{0xff, 0xff, 0x12}).Fold(), wire.Sum(0).Add([]byte{0xff, 0xff, 0x12, 0}).Fold(); got != want {
		t.Errorf("odd length: %04x, want %04x", got, want)
	}
	for n := range 100 {
		long := make([]byte, n)
		var want uint32
		for i := range long {
			long[i] = byte(i*31 + 200)
			if i%2 == 0 {
				want += uint32(long[i]) << 8
			} else {
				want += uint32(long[i])
			}
		}
		for want>>16 != 0 {
			want = want>>16 + want&0xffff
		}
		if got := wire.Sum(0).Add(long).Fold(); got != uint16(want) {
			t.Errorf("%d bytes: %04x, want %04x", n, got, want)
		}
	}
}

// Whatever the bytes, nothing panics, and what calls itself a train can be
// taken apart.
func FuzzTrain(f *testing.F) {
	for _, s := range supers() {
		s.payload = min(s.payload, 5000)
		v, b := s.make()
		var h [wire.VNetLen]byte
		v.Encode(h[:])
		f.Add(append(h[:], b...), 0)
	}
	f.Add(make([]byte, 30), 100000)
	f.Fuzz(func(t *testing.T, b []byte, longer int) {
		if len(b) < wire.VNetLen {
			return
		}
		var v wire.VNet
		v.Decode(b)
		var back [wire.VNetLen]byte
		v.Encode(back[:])
		if string(back[:]) != string(b[:wire.VNetLen]) {
			t.Fatalf("% x is encoded as % x", b[:wire.VNetLen], back)
		}
		frame := b[wire.VNetLen:]
		h := wire.Parse(frame)
		h.Flow(frame)
		h.TransportChecksum(frame)
		wire.Neighbour(frame)
		train := wire.NewTrain(v, frame, len(frame)+min(max(longer, 0), 70000))
		sum := 0
		var dst [wire.VNetLen + wire.MaxHeaderLen]byte
		for i := range train.Segments {
			n := train.WireLen(i)
			if n <= 0 && train.Length > 0 {
				t.Fatalf("segment %d of %+v has %d bytes", i, train, n)
			}
			sum += n
			if train.HeaderLen > 0 {
				train.Rebuild(dst[:], frame, i, 1)
				train.Rebuild(dst[:], frame, 0, i+1)
			}
		}
		if sum != train.WireBytes() {
			t.Fatalf("segments have %d bytes, %+v says %d", sum, train, train.WireBytes())
		}
	})
}
