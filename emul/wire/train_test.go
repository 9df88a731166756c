package wire_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"wirelab/emul/wire"
)

func supers() map[string]super {
	all := map[string]super{}
	for _, v6 := range []bool{false, true} {
		for _, udp := range []bool{false, true} {
			for _, partial := range []bool{false, true} {
				for vlans := range 2 {
					s := super{v6: v6, udp: udp, partial: partial, vlans: vlans, options: 12, payload: 40000 + 17,
						gso: 1448, flags: 0x99 /* CWR ACK PSH FIN */, ident: 65530, seq: 0xfffff000, ecn: !udp}
					all[fmt.Sprintf("v6=%v udp=%v partial=%v vlans=%d", v6, udp, partial, vlans)] = s
				}
			}
		}
	}
	all["extension header"] = super{v6: true, extension: true, payload: 5000, gso: 1400, partial: true, flags: 0x10}
	all["two segments"] = super{payload: 1449, gso: 1448, partial: true, flags: 0x18}
	all["exact multiple"] = super{payload: 2896, gso: 1448, partial: true, flags: 0x18}
	return all
}

// Every segment made from a train is a correct packet of its own: lengths,
// identification, sequence, flags and checksums, and together they carry the
// payload.
func TestSegmentsAreCorrectPackets(t *testing.T) {
	for name, s := range supers() {
		t.Run(name, func(t *testing.T) {
			v, frame := s.make()
			train := wire.NewTrain(v, frame, len(frame))
			if want := (s.payload + s.gso - 1) / s.gso; train.Segments != want {
				t.Fatalf("%d segments, want %d", train.Segments, want)
			}
			var payload []byte
			total := 0
			for i := range train.Segments {
				sv, p := rebuild(&train, frame, i, 1)
				if len(p) != train.WireLen(i) {
					t.Errorf("segment %d: %d bytes, want %d", i, len(p), train.WireLen(i))
				}
				if sv.GSOType != wire.GSONone || sv.GSOSize != 0 {
					t.Errorf("segment %d is still a train: %+v", i, sv)
				}
				finish(sv, p)
				checkPacket(t, s, p, i, i == 0, i == train.Segments-1)
				payload = append(payload, p[wire.Parse(p).Payload:]...)
				total += len(p)
			}
			if !bytes.Equal(payload, frame[train.HeaderLen:]) {
				t.Error("the payload is not what it was")
			}
			if total != train.WireBytes() {
				t.Errorf("WireBytes %d, segments have %d", train.WireBytes(), total)
			}
		})
	}
}

// checkPacket verifies a finished packet that begins with segment i.
func checkPacket(t *testing.T, s super, p []byte, i int, first, last bool) {
	t.Helper()
	h := wire.Parse(p)
	if h.Payload == 0 {
		t.Fatalf("segment %d does not parse", i)
	}
	want, _ := h.TransportChecksum(p)
	offset := 16
	if s.udp {
		offset = 6
	}
	if got := binary.BigEndian.Uint16(p[h.L4+offset:]); got != want {
		t.Errorf("segment %d: transport checksum %04x, want %04x", i, got, want)
	}
	if s.v6 {
		if got := int(binary.BigEndian.Uint16(p[h.L3+4:])); got != len(p)-h.L3-40 {
			t.Errorf("segment %d: IPv6 payload length %d", i, got)
		}
	} else {
		if got := int(binary.BigEndian.Uint16(p[h.L3+2:])); got != len(p)-h.L3 {
			t.Errorf("segment %d: IPv4 length %d", i, got)
		}
		if id := binary.BigEndian.Uint16(p[h.L3+4:]); id != s.ident+uint16(i) {
			t.Errorf("segment %d: identification %d", i, id)
		}
		if wire.Checksum(p[h.L3:h.L3+20]) != 0 {
			t.Errorf("segment %d: IPv4 checksum is wrong", i)
		}
	}
	if s.udp {
		if got := int(binary.BigEndian.Uint16(p[h.L4+4:])); got != len(p)-h.L4 {
			t.Errorf("segment %d: UDP length %d", i, got)
		}
		return
	}
	if seq := binary.BigEndian.Uint32(p[h.L4+4:]); seq != s.seq+uint32(i*s.gso) {
		t.Errorf("segment %d: sequence %d", i, seq)
	}
	flags := s.flags
	if !last {
		flags &^= 0x09
	}
	if !first {
		flags &^= 0x80
	}
	if got := p[h.L4+13]; got != flags {
		t.Errorf("segment %d: flags %02x, want %02x", i, got, flags)
	}
}

// A run of segments is a train of its own whose segments are those of the
// original.
func TestRunsAreTrains(t *testing.T) {
	for name, s := range supers() {
		t.Run(name, func(t *testing.T) {
			v, frame := s.make()
			train := wire.NewTrain(v, frame, len(frame))
			for _, r := range [][2]int{{0, train.Segments - 1}, {1, train.Segments - 1}, {train.Segments / 2, train.Segments - train.Segments/2}} {
				first, n := r[0], r[1]
				if n < 2 {
					continue
				}
				rv, run := rebuild(&train, frame, first, n)
				if rv.GSOType&^wire.GSOECN != v.GSOType&^wire.GSOECN || (rv.GSOType&wire.GSOECN != 0) != (s.ecn && first == 0) {
					t.Errorf("run %v: GSO type %x of %x", r, rv.GSOType, v.GSOType)
				}
				again := wire.NewTrain(rv, run, len(run))
				if again.Segments != n {
					t.Fatalf("run %v: %d segments", r, again.Segments)
				}
				for i := range n {
					v1, p1 := rebuild(&train, frame, first+i, 1)
					v2, p2 := rebuild(&again, run, i, 1)
					finish(v1, p1)
					finish(v2, p2)
					if !bytes.Equal(p1, p2) {
						t.Errorf("run %v: segment %d differs", r, i)
					}
				}
			}
		})
	}
}

func TestOrdinaryFramesAreOneSegment(t *testing.T) {
	v, frame := super{payload: 1000, partial: true}.make()
	for name, train := range map[string]wire.Train{
		"no offload":    wire.NewTrain(v, frame, len(frame)),
		"short":         wire.NewTrain(wire.VNet{GSOType: wire.GSOTCPv4, GSOSize: 1448}, frame, len(frame)),
		"wrong family":  wire.NewTrain(wire.VNet{GSOType: wire.GSOTCPv6, GSOSize: 100}, frame, len(frame)),
		"wrong proto":   wire.NewTrain(wire.VNet{GSOType: wire.GSOUDP, GSOSize: 100}, frame, len(frame)),
		"unknown type":  wire.NewTrain(wire.VNet{GSOType: 3, GSOSize: 100}, frame, len(frame)),
		"truncated":     wire.NewTrain(wire.VNet{GSOType: wire.GSOTCPv4, GSOSize: 100}, frame[:40], len(frame)),
		"empty":         wire.NewTrain(wire.VNet{GSOType: wire.GSOTCPv4, GSOSize: 100}, nil, 0),
		"size of zero":  wire.NewTrain(wire.VNet{GSOType: wire.GSOTCPv4}, frame, len(frame)),
		"not a payload": wire.NewTrain(wire.VNet{GSOType: wire.GSOTCPv4, GSOSize: 1}, frame[:54], 54),
	} {
		if train.Segments != 1 || train.WireLen(0) != train.Length || train.WireBytes() != train.Length {
			t.Errorf("%s: %+v", name, train)
		}
	}
}

func TestInsertVLAN(t *testing.T) {
	v, frame := super{payload: 4000, gso: 1448, partial: true}.make()
	buf := append(make([]byte, wire.VLANLen), frame...)
	v.InsertVLAN(buf, 0x8100, 0x2064)
	h := wire.Parse(buf)
	if !bytes.Equal(buf[:12], frame[:12]) || !bytes.Equal(buf[12:16], []byte{0x81, 0, 0x20, 0x64}) || !bytes.Equal(buf[16:], frame[12:]) {
		t.Errorf("frame is % x", buf[:20])
	}
	if h.L3 != 18 || int(v.ChecksumStart) != h.L4 {
		t.Errorf("headers %+v, checksum from %d", h, v.ChecksumStart)
	}
	if train := wire.NewTrain(v, buf, len(buf)); train.Segments != 3 {
		t.Errorf("%d segments", train.Segments)
	}
}

func TestRebuildDoesNotAllocate(t *testing.T) {
	v, frame := super{payload: 40000, gso: 1448, partial: true}.make()
	var dst [wire.VNetLen + wire.MaxHeaderLen]byte
	if n := testing.AllocsPerRun(100, func() {
		train := wire.NewTrain(v, frame, len(frame))
		train.Rebuild(dst[:], frame, 3, 4)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNewTrain(b *testing.B) {
	v, frame := super{payload: 60000, gso: 1448, partial: true, options: 12}.make()
	b.ReportAllocs()
	for b.Loop() {
		wire.NewTrain(v, frame, len(frame))
	}
}

func BenchmarkRebuild(b *testing.B) {
	v, frame := super{payload: 60000, gso: 1448, partial: true, options: 12}.make()
	train := wire.NewTrain(v, frame, len(frame))
	var dst [wire.VNetLen + wire.MaxHeaderLen]byte
	b.ReportAllocs()
	for b.Loop() {
		train.Rebuild(dst[:], frame, 3, 1)
	}
}
