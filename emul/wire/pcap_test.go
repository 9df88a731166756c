package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// capture writes a file of two interfaces and n packets.
func capture(t testing.TB, n int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewPcapWriter(&out, "test", []PcapInterface{
		{Name: "left1:eth0", Description: "net.bottleneck", LinkType: LinkTypeEthernet, SnapLen: 64},
		{Name: "right1:eth0", LinkType: LinkTypeEthernet},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		p := PcapPacket{Interface: i % 2, Time: 1_700_000_000_123_456_789 + int64(i), Length: 20 + i, Data: payload(20 + i), Flags: PcapInbound | PcapChecksumNotReady}
		if err := w.WritePacket(&p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteStats(1, PcapStats{Start: 5, End: 1_700_000_000_000_000_001, Received: 10, Dropped: 3}); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if w.Size() != int64(out.Len()) {
		t.Fatalf("size %d, but %d bytes were written", w.Size(), out.Len())
	}
	return out.Bytes()
}

func payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// readAll reads a file to its end or its first error.
func readAll(b []byte) (*PcapReader, []PcapPacket, error) {
	r, err := NewPcapReader(bytes.NewReader(b))
	if err != nil {
		return nil, nil, err
	}
	var out []PcapPacket
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return r, out, nil
		}
		if err != nil {
			return r, out, err
		}
		p.Data = bytes.Clone(p.Data)
		out = append(out, p)
	}
}

func TestPcapngReadsBack(t *testing.T) {
	r, packets, err := readAll(capture(t, 100))
	if err != nil {
		t.Fatal(err)
	}
	if len(packets) != 100 {
		t.Fatalf("%d packets, want 100", len(packets))
	}
	for i, p := range packets {
		kept := 20 + i
		if i%2 == 0 {
			kept = min(kept, 64)
		}
		if p.Interface != i%2 || p.Time != 1_700_000_000_123_456_789+int64(i) || p.Length != 20+i ||
			p.Flags != PcapInbound|PcapChecksumNotReady || !bytes.Equal(p.Data, payload(kept)) {
			t.Fatalf("packet %d is %+v", i, p)
		}
	}
	ifs := r.Interfaces()
	if len(ifs) != 2 || ifs[0].Name != "left1:eth0" || ifs[0].Description != "net.bottleneck" || ifs[0].SnapLen != 64 || ifs[0].Stats != nil {
		t.Errorf("interfaces %+v", ifs)
	}
	if s := ifs[1].Stats; s == nil || *s != (PcapStats{Start: 5, End: 1_700_000_000_000_000_001, Received: 10, Dropped: 3}) {
		t.Errorf("statistics %+v", s)
	}
}

func TestPcapngTruncatedGivesWhatIsThere(t *testing.T) {
	whole := capture(t, 20)
	_, all, err := readAll(whole)
	if err != nil {
		t.Fatal(err)
	}
	sawEOF := 0
	for n := range len(whole) {
		_, packets, err := readAll(whole[:n])
		if err == nil {
			sawEOF++ // cut exactly between two blocks
		} else if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v is no truncation", n, err)
		}
		for i, p := range packets {
			if !bytes.Equal(p.Data, all[i].Data) {
				t.Fatalf("cut at %d: packet %d differs", n, i)
			}
		}
	}
	// Section, two interfaces, 20 packets: 23 cuts fall between blocks.
	if sawEOF != 23 {
		t.Errorf("%d cuts read as whole files, want 23", sawEOF)
	}
}

func TestPcapngNonsenseIsAnError(t *testing.T) {
	for name, edit := range map[string]func([]byte) []byte{
		"no file":        func(b []byte) []byte { return []byte("hello world, this is text") },
		"empty":          func(b []byte) []byte { return nil },
		"byte order":     func(b []byte) []byte { b[8] ^= 0xff; return b },
		"version":        func(b []byte) []byte { b[12] = 9; return b },
		"trailing size":  func(b []byte) []byte { b[len(b)-4]++; return b },
		"interface":      func(b []byte) []byte { i := bytes.Index(b, payload(20)); b[i-20] = 7; return b },
		"captured bytes": func(b []byte) []byte { i := bytes.Index(b, payload(20)); b[i-6] = 0x40; return b },
	} {
		_, _, err := readAll(edit(capture(t, 2)))
		var broken *PcapError
		if !errors.As(err, &broken) {
			t.Errorf("%s: error %v, want a PcapError", name, err)
		}
	}
}

// bigEndian writes a small foreign file: the other byte order, microseconds,
// a second section, a block of unknown type, simple and old packet blocks.
func bigEndian() []byte {
	be := binary.BigEndian
	block := func(kind uint32, words ...uint32) []byte {
		size := uint32(12 + 4*len(words))
		b := be.AppendUint32(be.AppendUint32(nil, kind), size)
		for _, w := range words {
			b = be.AppendUint32(b, w)
		}
		return be.AppendUint32(b, size)
	}
	section := block(blockSection, byteOrderMagic, 1<<16, 0xffffffff, 0xffffffff)
	return bytes.Join([][]byte{
		section,
		block(blockInterface, 1<<16, 0),
		block(0x0bad, 1, 2, 3),
		block(blockEnhanced, 0, 0, 1_500_000, 4, 60, 0x01020304),
		section,
		block(blockInterface, 1<<16, 4, optInterfaceTicks<<16|1, 0x8a000000, 0), // 2^-10 s
		block(blockPacketOld, 0, 0, 1024+512, 4, 4, 0x05060708),
		block(blockSimple, 9, 0x090a0b0c),
	}, nil)
}

func TestPcapngOfOthers(t *testing.T) {
	r, packets, err := readAll(bigEndian())
	if err != nil || len(packets) != 3 || len(r.Interfaces()) != 2 {
		t.Fatalf("%d packets, error %v", len(packets), err)
	}
	if p := packets[0]; p.Time != 1_500_000_000 || p.Length != 60 || !bytes.Equal(p.Data, []byte{1, 2, 3, 4}) {
		t.Errorf("first packet %+v", p)
	}
	if p := packets[1]; p.Time != 1_500_000_000 || p.Interface != 1 || !bytes.Equal(p.Data, []byte{5, 6, 7, 8}) {
		t.Errorf("second packet %+v", p)
	}
	if p := packets[2]; p.Length != 9 || !bytes.Equal(p.Data, []byte{9, 10, 11, 12}) {
		t.Errorf("third packet %+v", p)
	}
}

// classic writes a classic file with one packet.
func classic(order binary.AppendByteOrder, magic uint32, fraction uint32) []byte {
	b := order.AppendUint32(nil, magic)
	b = order.AppendUint16(order.AppendUint16(b, 2), 4)
	for _, v := range []uint32{0, 0, 65535, LinkTypeEthernet, 100, fraction, 3, 60} {
		b = order.AppendUint32(b, v)
	}
	return append(b, 7, 8, 9)
}

func TestClassicPcap(t *testing.T) {
	for name, file := range map[string][]byte{
		"microseconds":          classic(binary.LittleEndian, 0xa1b2c3d4, 5),
		"nanoseconds":           classic(binary.LittleEndian, 0xa1b23c4d, 5000),
		"big-endian":            classic(binary.BigEndian, 0xa1b2c3d4, 5),
		"big-endian nanosecond": classic(binary.BigEndian, 0xa1b23c4d, 5000),
	} {
		r, packets, err := readAll(file)
		if err != nil || len(packets) != 1 {
			t.Errorf("%s: %d packets, error %v", name, len(packets), err)
			continue
		}
		p := packets[0]
		if p.Time != 100_000_005_000 || p.Length != 60 || !bytes.Equal(p.Data, []byte{7, 8, 9}) || r.Interfaces()[0].LinkType != LinkTypeEthernet {
			t.Errorf("%s: packet %+v, interfaces %+v", name, p, r.Interfaces())
		}
		if _, _, err := readAll(file[:len(file)-1]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: cut file gave %v", name, err)
		}
	}
}

func TestClassicPcapOfTheWorld(t *testing.T) {
	files, _ := filepath.Glob("../../../shared/data/pcap/*/*.pcap")
	if len(files) == 0 {
		t.Skip("the recorded traces are not here")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, packets, err := readAll(b)
		if err != nil || len(packets) == 0 {
			t.Errorf("%s: %d packets, error %v", filepath.Base(file), len(packets), err)
		}
		for i, p := range packets {
			if len(p.Data) > p.Length || i > 0 && p.Time < packets[0].Time-1e9 {
				t.Fatalf("%s: packet %d is %d of %d bytes at %d", filepath.Base(file), i, len(p.Data), p.Length, p.Time)
			}
		}
	}
}

func TestPcapWriterRefuses(t *testing.T) {
	w, err := NewPcapWriter(io.Discard, "", []PcapInterface{{Name: "a", LinkType: LinkTypeEthernet}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WritePacket(&PcapPacket{Interface: 1}); err == nil {
		t.Error("a packet of an interface that is not in the file was written")
	}
	if err := w.WritePacket(&PcapPacket{Data: make([]byte, pcapBuffer)}); err == nil || !strings.Contains(err.Error(), "snap length") {
		t.Errorf("a packet larger than the buffer gave %v", err)
	}
}

// full is a disk without room after n writes.
type full struct{ n int }

var errFull = errors.New("no space left")

func (f *full) Write(b []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestPcapWriterKeepsItsFirstError(t *testing.T) {
	w, err := NewPcapWriter(&full{1}, "", []PcapInterface{{LinkType: LinkTypeEthernet}})
	if err != nil {
		t.Fatal(err)
	}
	p := PcapPacket{Data: payload(1000), Length: 1000}
	for range 1000 {
		err = w.WritePacket(&p)
	}
	if !errors.Is(err, errFull) || !errors.Is(w.Flush(), errFull) {
		t.Errorf("error %v, want %v", err, errFull)
	}
}

func TestPcapWriterDoesNotAllocate(t *testing.T) {
	w, err := NewPcapWriter(io.Discard, "", []PcapInterface{{LinkType: LinkTypeEthernet, SnapLen: 96}})
	if err != nil {
		t.Fatal(err)
	}
	p := PcapPacket{Data: payload(1514), Length: 1514}
	if n := testing.AllocsPerRun(10_000, func() {
		if err := w.WritePacket(&p); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%g allocations per packet", n)
	}
}

func TestPcapngIsReadByWireshark(t *testing.T) {
	capinfos, err := exec.LookPath("capinfos")
	if err != nil {
		t.Skip("capinfos is not installed")
	}
	file := filepath.Join(t.TempDir(), "a.pcapng")
	if err := os.WriteFile(file, capture(t, 100), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(capinfos, "-M", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "left1:eth0") {
		t.Errorf("capinfos does not find the interface:\n%s", out)
	}
}

func FuzzPcapReader(f *testing.F) {
	f.Add(capture(f, 3))
	f.Add(bigEndian())
	f.Add(classic(binary.LittleEndian, 0xa1b2c3d4, 5))
	f.Add(classic(binary.BigEndian, 0xa1b23c4d, 5))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, packets, err := readAll(b)
		if r == nil {
			return
		}
		total := 0
		for _, p := range packets {
			total += len(p.Data)
			if p.Interface < 0 || p.Interface >= len(r.Interfaces()) {
				t.Fatalf("packet of interface %d of %d", p.Interface, len(r.Interfaces()))
			}
		}
		if total > len(b) {
			t.Fatalf("%d bytes of packets out of %d bytes", total, len(b))
		}
		_, again := r.Next()
		if err == nil && !errors.Is(again, io.EOF) || err != nil && !errors.Is(again, err) {
			t.Fatalf("error %v became %v", err, again)
		}
	})
}

func BenchmarkPcapWriter(b *testing.B) {
	w, err := NewPcapWriter(io.Discard, "", []PcapInterface{{LinkType: LinkTypeEthernet, SnapLen: 96}})
	if err != nil {
		b.Fatal(err)
	}
	p := PcapPacket{Data: payload(96), Length: 1514}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.WritePacket(&p); err != nil {
			b.Fatal(err)
		}
	}
}
