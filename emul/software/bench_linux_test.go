package software_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"wirelab/emul"
)

const (
	repetitions = 5
	oneMeasure  = 1500 * time.Millisecond
)

// bare makes two nodes joined by one veth pair, the physical limit here.
func bare(tb testing.TB) (a, b node) {
	tb.Helper()
	sa, sb := newSpace(tb), newSpace(tb)
	pair(tb, sa, sb, "eth0", "eth0", 1500)
	a, b = newNode(tb, sa, 1), newNode(tb, sb, 2)
	neighbours(tb, a, b)
	neighbours(tb, b, a)
	return a, b
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return quantile(s, 0.5)
}

// variant is one path of a comparison.
type variant struct {
	name string
	a, b node
	lab  *lab
}

// compare measures all variants in turn, several times, and reports each
// median and its ratio to the first variant's.
func compare(b *testing.B, unit string, scale float64, variants []variant, measure func(v variant) float64) {
	values := make([][]float64, len(variants))
	for range repetitions {
		for i, v := range variants {
			values[i] = append(values[i], measure(v)*scale)
		}
	}
	base := median(values[0])
	for i, v := range variants {
		m := median(values[i])
		b.ReportMetric(m, v.name+"-"+unit)
		b.ReportMetric(m/base, v.name+"-ratio")
		fmt.Printf("%-12s %8.3f %s  ratio %.3f  (%.3g)\n", v.name, m, unit, m/base, values[i])
		if v.lab != nil {
			c := v.lab.counters(b)
			fmt.Printf("  forward: in %d out %d queue %d loss %d overload %d, reverse: in %d out %d overload %d\n",
				c.Forward.PacketsIn, c.Forward.PacketsOut, c.Forward.QueueDrops, c.Forward.LossDrops, c.Forward.OverloadDrops,
				c.Reverse.PacketsIn, c.Reverse.PacketsOut, c.Reverse.OverloadDrops)
		}
	}
}

// paths are the bare pair, an unimpaired link, and one whose stages work but
// do not bind.
func paths(b *testing.B) []variant {
	va, vb := bare(b)
	plain := newLab(b, 1500)
	plain.join(b, plain.cable(emul.Impairment{}, emul.Impairment{}))
	busy := newLab(b, 1500)
	imp := emul.Impairment{Rate: 40e9, Loss: 1e-9}
	imp.Queue.Packets = 100000
	busy.join(b, busy.cable(imp, imp))
	check(b, busy.session.Arm())
	return []variant{
		{name: "veth", a: va, b: vb},
		{name: "unimpaired", a: plain.a, b: plain.b, lab: plain},
		{name: "stages", a: busy.a, b: busy.b, lab: busy},
	}
}

// BenchmarkTCP compares the throughput of one TCP flow with that of a bare
// veth pair. Run it with -benchtime 1x.
func BenchmarkTCP(b *testing.B) {
	for range b.N {
		compare(b, "Gbit/s", 8e-9, paths(b), func(v variant) float64 {
			return bulk(b, v.a, v.b, "cubic", oneMeasure)
		})
	}
}

// BenchmarkSmallPackets compares the rate of 64-byte frames (UDP of 22 bytes).
func BenchmarkSmallPackets(b *testing.B) {
	for range b.N {
		compare(b, "kpps", 1e-3, paths(b), func(v variant) float64 {
			return flood(b, v.a, v.b, 22, oneMeasure)
		})
	}
}

// BenchmarkDelay measures the error of a 10 ms delay as a UDP probe sees it
// (kernel receive stamp - send - 10 ms), idle and beside TCP.
func BenchmarkDelay(b *testing.B) {
	for range b.N {
		for _, mode := range []emul.Mode{emul.ModeDefault, emul.ModePrecise} {
			for _, load := range []float64{0, 100e6, 1e9} {
				delayError(b, mode, load)
			}
		}
	}
}

func delayError(b *testing.B, mode emul.Mode, load float64) {
	const delay = 10 * time.Millisecond
	l := newLab(b, 1500)
	imp := emul.Impairment{Delay: delay}
	c := l.cable(imp, imp)
	c.Mode = mode
	l.join(b, c)
	check(b, l.session.Arm())
	stop := make(chan struct{})
	if load > 0 {
		go paced(b, l, load, stop)
		time.Sleep(500 * time.Millisecond)
	}
	var p50, p99 []float64
	for range repetitions {
		got := probe(b, l.a, l.b, 400, 2*time.Millisecond)
		p50 = append(p50, float64(quantile(got, 0.5)-delay)/1e3)
		p99 = append(p99, float64(quantile(got, 0.99)-delay)/1e3)
	}
	close(stop)
	name := fmt.Sprintf("%s-%.0fM", mode, load/1e6)
	b.ReportMetric(median(p50), name+"-p50-us")
	b.ReportMetric(median(p99), name+"-p99-us")
	counters, err := l.session.Counters()
	check(b, err)
	h := counters.Links[0].Forward.DepartureError
	fmt.Printf("%-14s probe p50 %.1f p99 %.1f us; own histogram p50 %.1f p99 %.1f us; misses %d; cpu %.2fs\n", name, median(p50), median(p99),
		float64(h.Quantile(0.5))/1e3, float64(h.Quantile(0.99))/1e3, counters.Links[0].Forward.DeadlineMisses, float64(counters.CPUNS)/1e9)
}

// paced sends TCP at a rate until stopped.
func paced(b *testing.B, l *lab, rate float64, stop <-chan struct{}) {
	from, to := l.tcp(b, false, "cubic")
	go func() {
		buf := make([]byte, 1<<20)
		for {
			if _, err := to.Read(buf); err != nil {
				return
			}
		}
	}()
	maxRate(b, from, uint64(rate/8))
	buf := make([]byte, 64<<10)
	for {
		select {
		case <-stop:
			_ = from.Close()
			_ = to.Close()
			return
		default:
			if _, err := from.Write(buf); err != nil {
				return
			}
		}
	}
}
