package stage_test

import (
	"math"
	"testing"
	"time"

	"wirelab/emul"
	"wirelab/emul/stage"
	"wirelab/emul/unit"
)

const (
	full = 1514 // bytes of an Ethernet frame with an IP packet of 1500
	ms   = int64(time.Millisecond)
)

func direction(imp emul.Impairment) *stage.Direction {
	return stage.NewDirection(imp, stage.Options{Seed: 7, Link: "l", Direction: "forward"})
}

func TestDueTimesAreComputed(t *testing.T) {
	d := direction(emul.Impairment{Rate: 100e6, Delay: 10 * time.Millisecond, Queue: unit.Limit{Packets: 100}})
	// 1514 bytes at 100 Mbit/s take 121.12 us.
	for i, want := range []int64{121120, 242240, 363360} {
		v := d.Process(full, 0)
		if v.Cause != stage.Pass || v.End != want || v.Due != want+10*ms || v.Index != uint64(i) {
			t.Errorf("segment %d: %+v, want end %d", i, v, want)
		}
	}
	// An idle link starts at the arrival, not earlier.
	if v := d.Process(full, 5*ms); v.Start != 5*ms || v.End != 5*ms+121120 {
		t.Errorf("after idling: %+v", v)
	}
}

func TestRateDoesNotDrift(t *testing.T) {
	for _, rate := range []unit.Rate{1, 1e3, 3e6, 7e9, 40e9, 100e9, 999999937} {
		d := direction(emul.Impairment{Rate: rate, Queue: unit.Limit{Packets: math.MaxInt32}})
		const n = 10007
		var v stage.Verdict
		for range n {
			v = d.Process(full, 0)
		}
		want := float64(n) * full * 8 / float64(rate) * 1e9
		if math.Abs(float64(v.End)-want) > math.Max(1, want*1e-12) {
			t.Errorf("%v: %d segments end at %d, want %.1f", rate, n, v.End, want)
		}
	}
}

func TestDropTail(t *testing.T) {
	for _, c := range []struct {
		name   string
		limit  unit.Limit
		length int
		want   int // accepted of a burst at one instant: waiting, and one in transmission
	}{
		{"packets", unit.Limit{Packets: 100}, full, 101},
		{"packets count whatever their size", unit.Limit{Packets: 100}, 64, 101},
		{"bytes", unit.Limit{Bytes: 10 * full}, full, 11},
		{"bytes not whole", unit.Limit{Bytes: 10*full + 100}, full, 11},
		{"small packets by bytes", unit.Limit{Bytes: 10 * full}, 60, 1 + 10*full/60},
		{"time", unit.Limit{Time: 10 * time.Millisecond}, full, 1 + 8}, // 12 500 bytes hold 8
		{"at least one waits", unit.Limit{Bytes: 1}, full, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := direction(emul.Impairment{Rate: 10e6, Queue: c.limit})
			got := 0
			for range 1000 {
				if d.Process(c.length, 0).Cause == stage.Pass {
					got++
				}
			}
			if got != c.want {
				t.Errorf("accepted %d, want %d", got, c.want)
			}
			if n, _ := d.Backlog(0); n != int64(c.want-1) {
				t.Errorf("backlog %d, want %d", n, c.want-1)
			}
		})
	}
}

// The queueing delay of a full 100-packet queue at 100 Mbit/s is at most
// 100 packets and what is left of the one in transmission.
func TestQueueBoundsDelay(t *testing.T) {
	d := direction(emul.Impairment{Rate: 100e6, Queue: unit.Limit{Packets: 100}})
	var worst int64
	for at := int64(0); at < 100*ms; at += 50_000 { // more than the link carries
		if v := d.Process(full, at); v.Cause == stage.Pass {
			worst = max(worst, v.Start-at)
		}
	}
	if tx := int64(121120); worst > 100*tx || worst < 99*tx {
		t.Errorf("worst wait %d ns, want 99 to 100 packets of %d ns", worst, tx)
	}
}

func TestBacklog(t *testing.T) {
	d := direction(emul.Impairment{Rate: 10e6, Queue: unit.Limit{Packets: 10}}) // 1.2112 ms each
	for range 5 {
		d.Process(full, 0)
	}
	for _, c := range []struct{ now, packets int64 }{{0, 4}, {1211199, 4}, {1211200, 3}, {4 * 1211200, 0}, {0, 4}} {
		if n, b := d.Backlog(c.now); n != c.packets || b != c.packets*full {
			t.Errorf("at %d: %d packets, %d bytes, want %d packets", c.now, n, b, c.packets)
		}
	}
}

func TestDefaultQueueIsOneBDP(t *testing.T) {
	d := direction(emul.Impairment{Rate: 100e6, Delay: 20 * time.Millisecond})
	if got, want := d.Impairment().Queue.Bytes, unit.BDP(100e6, 40*time.Millisecond, 1, full); got != want {
		t.Errorf("queue is %v, want %v", got, want)
	}
}

func drops(d *stage.Direction, n int) []int {
	var out []int
	for i := range n {
		if d.Process(full, int64(i)).Cause == stage.LossDrop {
			out = append(out, i)
		}
	}
	return out
}

func TestLossIsAFunctionOfTheIndex(t *testing.T) {
	d := direction(emul.Impairment{Loss: 0.01})
	if got := drops(d, 20000); len(got) != 0 {
		t.Fatalf("lost %d before Arm", len(got))
	}
	d.Arm()
	first := drops(d, 20000)
	// 1 % of 20000, within 2 standard deviations of 14 and a bit.
	if len(first) < 160 || len(first) > 240 {
		t.Errorf("lost %d of 20000 at 1 %%", len(first))
	}
	d.Arm()
	if again := drops(d, 20000); !equal(first, again) {
		t.Errorf("after Arm other segments are lost")
	}
	// Queue drops do not shift the pattern.
	q := direction(emul.Impairment{Loss: 0.01, Rate: 1e6, Queue: unit.Limit{Packets: 1}})
	q.Arm()
	lost := map[int]bool{}
	for _, i := range first {
		lost[i] = true
	}
	passed, lostToo := 0, 0
	for i := range 20000 {
		switch q.Process(full, int64(i)*3*ms).Cause {
		case stage.Pass:
			passed++
			if lost[i] {
				t.Fatalf("segment %d passes only because others were dropped", i)
			}
		case stage.LossDrop:
			lostToo++
			if !lost[i] {
				t.Fatalf("segment %d is lost only because others were dropped", i)
			}
		}
	}
	if passed == 0 || lostToo == 0 {
		t.Errorf("passed %d, lost %d: the test shows nothing", passed, lostToo)
	}
	other := stage.NewDirection(emul.Impairment{Loss: 0.01}, stage.Options{Seed: 7, Link: "l", Direction: "reverse"})
	other.Arm()
	if equal(first, drops(other, 20000)) {
		t.Error("both directions lose the same segments")
	}
}

func TestLossOfOneLosesAll(t *testing.T) {
	d := direction(emul.Impairment{Loss: 1})
	d.Arm()
	if got := drops(d, 1000); len(got) != 1000 {
		t.Errorf("lost %d of 1000", len(got))
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestJitterKeepsOrder(t *testing.T) {
	for _, dist := range []string{"", "uniform", "normal"} {
		d := direction(emul.Impairment{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Distribution: dist})
		last, inversions := int64(0), 0
		for i := range 10000 {
			v := d.Process(full, int64(i)*100_000)
			if v.Due < last {
				inversions++
			}
			last = v.Due
		}
		if inversions > 0 || !d.Ordered() {
			t.Errorf("%q: %d inversions", dist, inversions)
		}
	}
}

func TestJitterDistribution(t *testing.T) {
	const n = 100000
	for _, c := range []struct {
		dist          string
		delay, jitter time.Duration
		mean, sd      float64 // ms
		low, high     float64
	}{
		{"uniform", 20 * time.Millisecond, 5 * time.Millisecond, 20, 5 / math.Sqrt(3), 15, 25},
		{"normal", 30 * time.Millisecond, 5 * time.Millisecond, 30, 5, 0, 50},
		// Truncated at zero: the upper half of the wider interval is left.
		{"uniform", 2 * time.Millisecond, 6 * time.Millisecond, 4, 8 / math.Sqrt(12), 0, 8},
	} {
		d := direction(emul.Impairment{Delay: c.delay, Jitter: c.jitter, Distribution: c.dist, JitterReorders: true})
		var sum, squares float64
		for range n {
			x := float64(d.Process(full, 0).Due) / 1e6
			if x < c.low || x > c.high {
				t.Fatalf("%s: %f ms is outside %v to %v", c.dist, x, c.low, c.high)
			}
			sum += x
			squares += x * x
		}
		mean := sum / n
		sd := math.Sqrt(squares/n - mean*mean)
		if math.Abs(mean-c.mean) > 0.05 || math.Abs(sd-c.sd) > 0.05 {
			t.Errorf("%s %v ± %v: mean %.3f sd %.3f ms, want %.3f and %.3f", c.dist, c.delay, c.jitter, mean, sd, c.mean, c.sd)
		}
	}
}

func TestPatchLeavesTheRest(t *testing.T) {
	d := direction(emul.Impairment{Rate: 10e6, Queue: unit.Limit{Packets: 3}})
	d.Arm()
	for range 3 {
		d.Process(full, 0)
	}
	imp := d.Impairment()
	imp.Loss = 0.5
	d.Set(imp)
	imp = d.Impairment()
	imp.Delay = 7 * time.Millisecond
	d.Set(imp)
	if got := d.Impairment(); got.Loss != 0.5 || got.Delay != 7*time.Millisecond || got.Rate != 10e6 || got.Queue.Packets != 3 {
		t.Errorf("after two patches: %+v", got)
	}
	if n, _ := d.Backlog(0); n != 2 {
		t.Errorf("backlog %d after patches, want 2", n)
	}
	if v := d.Process(full, 0); v.Index != 3 {
		t.Errorf("index %d after patches, want 3", v.Index)
	}
	if v := d.Process(full, 0); v.Cause != stage.QueueDrop {
		t.Errorf("the queue forgot what waits: %+v", v)
	}
}

func TestExemptIsNeverLostNorCounted(t *testing.T) {
	d := direction(emul.Impairment{Loss: 1, Delay: time.Millisecond})
	d.Arm()
	v := d.Exempt(60, 5)
	if v.Cause != stage.Pass || v.Due != 5+ms {
		t.Errorf("exempt: %+v", v)
	}
	if v := d.Process(full, 6); v.Index != 0 || v.Cause != stage.LossDrop {
		t.Errorf("the first counted segment: %+v", v)
	}
}

func TestWholeTrain(t *testing.T) {
	d := direction(emul.Impairment{Delay: time.Millisecond})
	if !d.Uniform() {
		t.Fatal("a pure delay treats all segments alike")
	}
	if v := d.Whole(40, 3); v.Due != 3+ms || v.Index != 0 {
		t.Errorf("%+v", v)
	}
	if v := d.Whole(1, 4); v.Index != 40 {
		t.Errorf("the next segment is %d, want 40", v.Index)
	}
	for _, imp := range []emul.Impairment{{Rate: 1e9}, {Loss: 0.1}, {Delay: time.Second, Jitter: 1}} {
		if direction(imp).Uniform() {
			t.Errorf("%+v decides per segment", imp)
		}
	}
}

// A train meets the fate that its segments meet one by one.
func TestTrainIsItsSegments(t *testing.T) {
	for _, imp := range []emul.Impairment{
		{Rate: 300e6, Queue: unit.Limit{Packets: 60}, Loss: 0.1, Delay: time.Millisecond},
		{Loss: 0.2, Delay: time.Millisecond},
		{Rate: 40e9, Queue: unit.Limit{Bytes: 100000}},
		{Delay: time.Millisecond, Jitter: time.Millisecond, JitterReorders: true},
	} {
		one, all := direction(imp), direction(imp)
		one.Arm()
		all.Arm()
		var runs []stage.Run
		for round := range 50 {
			at := int64(round) * 500_000
			n, last := 1+round%45, 60+round
			due := map[int]int64{}
			drops := map[stage.Cause]int{}
			for i := range n {
				length := full
				if i == n-1 {
					length = last
				}
				if v := one.Process(length, at); v.Cause == stage.Pass {
					due[i] = v.Due
				} else {
					drops[v.Cause]++
				}
			}
			var queueDrops, lossDrops int
			runs, queueDrops, lossDrops = all.Train(n, full, last, at, 0, runs[:0])
			if queueDrops != drops[stage.QueueDrop] || lossDrops != drops[stage.LossDrop] {
				t.Fatalf("%+v: %d and %d drops, one by one %v", imp, queueDrops, lossDrops, drops)
			}
			for _, r := range runs {
				for i := r.First; i < r.First+r.Count; i++ {
					if due[i] != r.Due {
						t.Fatalf("%+v: segment %d is due at %d, one by one at %d", imp, i, r.Due, due[i])
					}
					delete(due, i)
				}
			}
			if len(due) != 0 {
				t.Fatalf("%+v: segments %v are in no run", imp, due)
			}
		}
	}
}

// A coarser grain makes fewer runs, none of them early or late by more.
func TestTrainGrain(t *testing.T) {
	d := direction(emul.Impairment{Rate: 40e9, Queue: unit.Limit{Packets: 1000}}) // 302.8 ns each
	runs, _, _ := d.Train(40, full, full, 0, 1000, nil)
	if len(runs) != 10 {
		t.Errorf("%d runs of 40 segments, want four segments in each", len(runs))
	}
	for _, r := range runs {
		last := float64(r.First+r.Count) * 302.8
		if r.Count != 4 || math.Abs(float64(r.Due)-last) > 1 {
			t.Errorf("%+v, the last segment is due at %.1f", r, last)
		}
	}
}

func TestStreamsDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range []uint64{0, 1, 2, 1 << 63} {
		for _, link := range []string{"", "a", "b", "ab"} {
			for _, dir := range []string{"forward", "reverse"} {
				for _, st := range []string{"loss", "jitter"} {
					s := stage.NewStream(seed, link, dir, st)
					for i := range uint64(100) {
						v := s.At(i)
						name := link + "/" + dir + "/" + st
						if other, ok := seen[v]; ok {
							t.Fatalf("%s and %s draw the same", name, other)
						}
						seen[v] = name
					}
				}
			}
		}
	}
}

// A serial test: neighbouring draws are independent, bits are balanced.
func TestStreamIsRandom(t *testing.T) {
	s := stage.NewStream(1, "l", "forward", "loss")
	const n = 1 << 18
	var sum, product float64
	var ones [64]int
	for i := range uint64(n) {
		x, y := s.Float(i), s.Float(i+1)
		sum += x
		product += (x - 0.5) * (y - 0.5)
		for b := range ones {
			ones[b] += int(s.At(i) >> b & 1)
		}
	}
	if m := sum / n; math.Abs(m-0.5) > 0.003 { // 5 standard errors
		t.Errorf("mean %f", m)
	}
	if c := product / n * 12; math.Abs(c) > 0.01 {
		t.Errorf("serial correlation %f", c)
	}
	for b, k := range ones {
		if math.Abs(float64(k)-n/2) > 5*256 {
			t.Errorf("bit %d is set in %d of %d", b, k, n)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	d := direction(emul.Impairment{Rate: 1e9, Queue: unit.Limit{Packets: 1000}, Loss: 0.01,
		Delay: time.Millisecond, Jitter: 100 * time.Microsecond, Distribution: "normal"})
	d.Arm()
	at := int64(0)
	for range 10000 {
		d.Process(full, at) // grow the queue
	}
	if n := testing.AllocsPerRun(1000, func() {
		at += 10_000
		d.Process(full, at)
	}); n != 0 {
		t.Errorf("%v allocations per segment", n)
	}
}

func BenchmarkTrain(b *testing.B) {
	d := direction(emul.Impairment{Rate: 40e9, Loss: 1e-9, Queue: unit.Limit{Packets: 1000}})
	d.Arm()
	at := int64(0)
	var runs []stage.Run
	b.ReportAllocs()
	for b.Loop() {
		at += 20_000
		runs, _, _ = d.Train(45, full, full, at, 1000, runs[:0])
	}
}

func BenchmarkProcess(b *testing.B) {
	for _, c := range []struct {
		name string
		imp  emul.Impairment
	}{
		{"rate-loss", emul.Impairment{Rate: 40e9, Loss: 1e-9, Queue: unit.Limit{Packets: 1000}}},
		{"delay", emul.Impairment{Delay: time.Millisecond}},
		{"uniform", emul.Impairment{Rate: 40e9, Delay: time.Millisecond, Jitter: 1000}},
		{"normal", emul.Impairment{Rate: 40e9, Delay: time.Millisecond, Jitter: 1000, Distribution: "normal"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := direction(c.imp)
			d.Arm()
			b.ReportAllocs()
			at := int64(0)
			for b.Loop() {
				at += 250
				d.Process(full, at)
			}
		})
	}
}
