package software

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/emul/hist"
	"wirelab/emul/stage"
	"wirelab/emul/unit"
	"wirelab/emul/wire"
)

// bench is a worker with one link whose devices are Unix datagram sockets: a
// datagram is a virtio header and a frame, as on a packet socket.
type bench struct {
	*worker
	a, b int // our ends
	d    *direction
}

func newBench(tb testing.TB, imp emul.Impairment) *bench {
	tb.Helper()
	pair := func() (ours, theirs int) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			tb.Fatal(err)
		}
		for _, fd := range fds {
			tb.Cleanup(func() { _ = unix.Close(fd) })
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4<<20)
		}
		return fds[0], fds[1]
	}
	a, a1 := pair()
	b, b1 := pair()
	dir := func(name uint8, in, out int) *direction {
		return &direction{
			model: stage.NewDirection(imp, stage.Options{Link: "l", Direction: directionNames[name]}),
			in:    in, out: out, place: -1, batch: batchSize, name: name, errors: &hist.Histogram{},
			quantum: int64(quantumFor(imp, 0)),
		}
	}
	d := dir(forward, a1, b1)
	w, err := newWorker([]*direction{d, dir(reverse, b1, a1)}, 256<<20, false, -1)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(w.close)
	return &bench{worker: w, a: a, b: b, d: d}
}

// segment is an IPv4 TCP frame with its virtio header; gso of 0 is no train.
func tcpFrame(payload, gso int) []byte {
	b := make([]byte, wire.VNetLen+54+payload)
	v := wire.VNet{Flags: wire.FlagNeedsChecksum, ChecksumStart: 34, ChecksumOffset: 16}
	if gso > 0 {
		v.GSOType, v.GSOSize, v.HeaderLen = wire.GSOTCPv4, uint16(gso), 54
	}
	v.Encode(b)
	f := b[wire.VNetLen:]
	binary.BigEndian.PutUint16(f[12:], wire.EtherTypeIPv4)
	f[14], f[23], f[46] = 0x45, wire.ProtoTCP, 5<<4
	binary.BigEndian.PutUint16(f[16:], uint16(40+payload))
	for i := range payload {
		f[54+i] = byte(i ^ i>>8)
	}
	return b
}

func (b *bench) send(tb testing.TB, frame []byte) {
	tb.Helper()
	if _, err := unix.Write(b.a, frame); err != nil {
		tb.Fatal(err)
	}
}

// take reads one frame that came out, nil if there is none.
func (b *bench) take(tb testing.TB) []byte {
	tb.Helper()
	buf := make([]byte, 1<<17)
	n, err := unix.Read(b.b, buf)
	if err == unix.EAGAIN {
		return nil
	}
	if err != nil {
		tb.Fatal(err)
	}
	return buf[:n]
}

const farFuture = int64(1) << 62

// Frames of all sizes cross unchanged, in whichever slots they lie.
func TestFramesCrossUnchanged(t *testing.T) {
	for _, payload := range []int{0, 10, 1446, smallData - 54 - 1, smallData - 54, smallData - 53, 9000,
		middleData - 54, middleData - 53, 40000, bigData - 54} {
		b := newBench(t, emul.Impairment{})
		for range 3 {
			in := tcpFrame(payload, 0)
			b.send(t, in)
			b.receive(b.d)
			b.release(farFuture)
			if out := b.take(t); !bytes.Equal(in, out) {
				t.Fatalf("%d bytes of payload: %d bytes came out of %d", payload, len(out), len(in))
			}
		}
	}
}

// A train of which segments are lost leaves as runs of the others.
func TestTrainIsSplitAtLosses(t *testing.T) {
	b := newBench(t, emul.Impairment{Loss: 0.2})
	b.d.model.Arm()
	const payload, gso = 60000, 1448
	in := tcpFrame(payload, gso)
	b.send(t, in)
	b.receive(b.d)
	b.release(farFuture)
	stream := stage.NewStream(0, "l", "forward", "loss")
	want := map[int]bool{} // offsets of the payload that must arrive
	segments, lost := (payload+gso-1)/gso, 0
	for i := range segments {
		if stage.NewBernoulli(stream, 0.2).Drop(uint64(i)) {
			lost++
			continue
		}
		want[i] = true
	}
	trains := 0
	for f := b.take(t); f != nil; f = b.take(t) {
		trains++
		var v wire.VNet
		v.Decode(f)
		train := wire.NewTrain(v, f[wire.VNetLen:], len(f)-wire.VNetLen)
		seq := int(binary.BigEndian.Uint32(f[wire.VNetLen+38:]))
		for i := range train.Segments {
			if !want[seq/gso+i] {
				t.Errorf("segment %d arrived twice, or was lost", seq/gso+i)
			}
			delete(want, seq/gso+i)
		}
		if data := f[wire.VNetLen+54:]; !bytes.Equal(data, in[wire.VNetLen+54+seq:][:len(data)]) {
			t.Errorf("the payload from %d on is not what was sent", seq)
		}
	}
	if len(want) > 0 || trains < 2 || lost == 0 {
		t.Errorf("%d segments missing, %d lost, %d trains", len(want), lost, trains)
	}
	c := b.d.counters
	if c.packetsIn != uint64(segments) || c.lossDrops != uint64(lost) || c.packetsOut != uint64(segments-lost) || c.queueDrops+c.overloadDrops != 0 {
		t.Errorf("counters %+v", c)
	}
	if p := &b.arena.pools[big]; len(p.free) != int(p.unused)-batchSize {
		t.Errorf("%d slots are free of %d: a packet leaked", len(p.free), p.unused)
	}
}

// Segments leave one by one when each is due at its own time, and together
// when the quantum allows.
func TestRelease(t *testing.T) {
	for _, c := range []struct {
		rate   unit.Rate
		delay  time.Duration
		frames int // of ten segments released within 100 us after the first is due
	}{
		{100e6, 10 * time.Millisecond, 1},
		{1e9, 10 * time.Millisecond, 9},  // 12.1 us each: 0 to 8 at most 100 us after
		{40e9, 10 * time.Millisecond, 1}, // all at once, within the quantum
	} {
		b := newBench(t, emul.Impairment{Rate: c.rate, Delay: c.delay, Queue: unit.Limit{Packets: 1000}})
		b.send(t, tcpFrame(14600, 1460))
		b.receive(b.d)
		due := b.agenda.next().next
		got := 0
		for at := due; at <= due+100_000; at += 1000 {
			// Each look is at one instant: the quantum must not matter here.
			b.d.quantum = 0
			if c.rate == 40e9 {
				b.d.quantum = int64(fastQuantum)
			}
			for b.agenda.next() != nil && b.agenda.next().next <= at {
				b.fill(b.d, at)
				b.flush(b.d)
				b.agenda.update(b.d)
			}
			for b.take(t) != nil {
				got++
			}
		}
		if got != c.frames {
			t.Errorf("%v: %d frames, want %d", c.rate, got, c.frames)
		}
	}
}

func TestQuantum(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		rate  unit.Rate
		delay time.Duration
		asked time.Duration
		want  time.Duration
	}{
		{0, 10 * ms, 0, 0}, {100e6, 10 * ms, 0, 0}, {200e6, 10 * ms, 0, 50 * time.Microsecond},
		{1e9, 10 * ms, 0, 50 * time.Microsecond}, {10e9, 10 * ms, 0, 100 * time.Microsecond},
		{5e9, ms, 0, 0}, {40e9, ms, 0, 13107}, {10e9, ms, ms, ms}, {10e9, 10 * ms, -1, 0},
	} {
		if got := quantumFor(emul.Impairment{Rate: c.rate, Delay: c.delay}, c.asked); got != c.want {
			t.Errorf("%v, %v, asked %v: %v, want %v", c.rate, c.delay, c.asked, got, c.want)
		}
	}
}

// The arena's limit makes overload drops, and the link goes on.
func TestFullArena(t *testing.T) {
	b := newBench(t, emul.Impairment{Delay: time.Hour})
	b.arena.limit = b.arena.touched + 4*bigSlot
	for range 20 {
		b.send(t, tcpFrame(60000, 1448))
		b.receive(b.d)
	}
	c := b.d.counters
	if c.overloadDrops == 0 || c.packetsIn == 0 || c.queueDrops+c.lossDrops != 0 {
		t.Errorf("counters %+v", c)
	}
	b.release(farFuture)
	b.send(t, tcpFrame(60000, 1448))
	before := b.d.overloadDrops
	b.receive(b.d)
	if b.d.overloadDrops != before {
		t.Error("memory was not given back")
	}
}

// One link that holds much does not starve the others of the same worker.
func TestLinksShareTheArena(t *testing.T) {
	b := newBench(t, emul.Impairment{Delay: time.Hour})
	b.arena.limit, b.share = 12<<20, 4<<20
	for range 100 {
		b.send(t, tcpFrame(60000, 1448))
		b.receive(b.d)
	}
	if b.d.held < b.share || b.d.held > b.share+bigSlot || b.d.overloadDrops == 0 {
		t.Errorf("one direction holds %d of %d bytes", b.d.held, b.arena.limit)
	}
	other := b.directions[1]
	for range 10 {
		if _, err := unix.Write(b.b, tcpFrame(10000, 1448)); err != nil {
			t.Fatal(err)
		}
		b.receive(other)
	}
	if other.overloadDrops != 0 || other.packetsIn == 0 {
		t.Errorf("the other direction: %+v", other.counters)
	}
	for b.agenda.next() != nil {
		b.release(farFuture) // one batch: the time after it is the real one
	}
	if b.d.held != 0 || other.held != 0 {
		t.Errorf("%d and %d bytes are held by empty lines", b.d.held, other.held)
	}
}

// Malformed packets neither stop the worker nor count as losses of the link.
func TestMalformedFrames(t *testing.T) {
	b := newBench(t, emul.Impairment{Rate: 1e9, Loss: 0.01, Queue: unit.Limit{Packets: 10}})
	b.d.model.Arm()
	for n := range 200 {
		f := tcpFrame(400, 100)[:n]
		if n > wire.VNetLen+15 {
			f[wire.VNetLen+14] = byte(n) // header lengths at random
		}
		b.send(t, f)
		b.receive(b.d)
		b.release(farFuture)
		for b.take(t) != nil {
		}
	}
	c := b.d.counters
	if got := c.packetsOut + c.queueDrops + c.lossDrops; c.packetsIn != got || c.packetsIn == 0 {
		t.Errorf("in %d, out or dropped %d", c.packetsIn, got)
	}
}

// Jitter that may reorder takes the heap; nothing is lost on the way back to
// order.
func TestReordering(t *testing.T) {
	b := newBench(t, emul.Impairment{Delay: time.Second, Jitter: time.Second, JitterReorders: true})
	for i := range 200 {
		f := tcpFrame(10, 0)
		binary.BigEndian.PutUint32(f[wire.VNetLen+38:], uint32(i))
		b.send(t, f)
		b.receive(b.d)
	}
	last, inversions, n := -1, 0, 0
	for b.agenda.next() != nil {
		at := b.agenda.next().next
		b.fill(b.d, at)
		b.flush(b.d)
		b.agenda.update(b.d)
		for f := b.take(t); f != nil; f = b.take(t) {
			seq := int(binary.BigEndian.Uint32(f[wire.VNetLen+38:]))
			if seq < last {
				inversions++
			}
			last = seq
			n++
		}
	}
	if n != 200 || inversions < 50 {
		t.Errorf("%d arrived, %d inversions", n, inversions)
	}
}

// No packet allocates, neither a train in pieces nor a small one.
func TestNoAllocationsPerPacket(t *testing.T) {
	b := newBench(t, emul.Impairment{Rate: 40e9, Loss: 0.01, Queue: unit.Limit{Packets: 1000}})
	b.d.model.Arm()
	small, train := tcpFrame(10, 0), tcpFrame(60000, 1448)
	sink := make([]byte, 1<<17)
	cycle := func() {
		_, _ = unix.Write(b.a, small)
		_, _ = unix.Write(b.a, train)
		b.receive(b.d)
		b.release(farFuture)
		for {
			if n, _ := unix.Read(b.b, sink); n <= 0 {
				return
			}
		}
	}
	for range 100 {
		cycle()
	}
	if n := testing.AllocsPerRun(500, cycle); n != 0 {
		t.Errorf("%v allocations per cycle", n)
	}
	if b.d.packetsOut == 0 || b.d.lossDrops == 0 {
		t.Errorf("counters %+v", b.d.counters)
	}
}

func TestControlMessages(t *testing.T) {
	var b []byte
	add := func(level, typ int32, data []byte) {
		b = binary.NativeEndian.AppendUint64(b, uint64(16+len(data)))
		b = binary.NativeEndian.AppendUint32(b, uint32(level))
		b = binary.NativeEndian.AppendUint32(b, uint32(typ))
		b = append(b, data...)
		for len(b)%8 != 0 {
			b = append(b, 0)
		}
	}
	aux := make([]byte, 20)
	binary.NativeEndian.PutUint32(aux, statusVLAN|statusVLANTPID)
	binary.NativeEndian.PutUint16(aux[16:], 0x2064)
	binary.NativeEndian.PutUint16(aux[18:], 0x88a8)
	add(unix.SOL_PACKET, unix.PACKET_AUXDATA, aux)
	stamp := make([]byte, 16)
	binary.NativeEndian.PutUint64(stamp, 12)
	binary.NativeEndian.PutUint64(stamp[8:], 34)
	add(unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, stamp)
	if a := parseControl(b); a != (ancillary{stamp: 12e9 + 34, tagged: true, tpid: 0x88a8, tci: 0x2064}) {
		t.Errorf("%+v", a)
	}
	for n := range b {
		parseControl(b[:n]) // truncated ones do no harm
	}
}

func TestArrivalIsClamped(t *testing.T) {
	c := newClock()
	now := c.now()
	wall := time.Now().UnixNano()
	got := c.arrival(wall, c.now())
	if got < now-int64(time.Millisecond) || got > c.now() {
		t.Errorf("a stamp of now is %d ns away", got-now)
	}
	now = c.now()
	for _, s := range []struct{ stamp, want int64 }{
		{0, now},
		{wall + int64(time.Hour), now},
		{wall - int64(time.Hour), now - maxStampAge},
	} {
		if got := c.arrival(s.stamp, now); got != s.want {
			t.Errorf("stamp %d: %d, want %d", s.stamp, got-now, s.want-now)
		}
	}
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	if d := c.now() - ts.Nano(); d < -int64(time.Millisecond) {
		t.Errorf("the clock is %d ns behind CLOCK_MONOTONIC", -d)
	}
}

// A worker of real-time priority must not spin for more than its share.
func TestSpinIsBounded(t *testing.T) {
	b := newBench(t, emul.Impairment{})
	if !b.maySpin() {
		t.Fatal("may not spin at first")
	}
	b.spun = spinShare
	if b.maySpin() {
		t.Error("spins on beyond its share")
	}
	b.spinFrom -= 2 * spinWindow
	if !b.maySpin() {
		t.Error("may not spin in the next window")
	}
}

func BenchmarkWorker(b *testing.B) {
	for _, c := range []struct {
		name    string
		imp     emul.Impairment
		payload int
	}{
		{"small", emul.Impairment{}, 10},
		{"train", emul.Impairment{}, 60000},
		{"train-stages", emul.Impairment{Rate: 40e9, Loss: 1e-9, Queue: unit.Limit{Packets: 1000}}, 60000},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := newBench(b, c.imp)
			frame := tcpFrame(c.payload, 1448)
			sink := make([]byte, 1<<17)
			b.ReportAllocs()
			b.SetBytes(int64(c.payload))
			for b.Loop() {
				_, _ = unix.Write(w.a, frame)
				w.receive(w.d)
				w.release(farFuture)
				for n := 1; n > 0; {
					n, _ = unix.Read(w.b, sink)
				}
			}
		})
	}
}
