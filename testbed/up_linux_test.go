package testbed

import (
	"context"
	"os"
	"testing"
	"time"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/emul/unit"
	"wirelab/testbed/journal"
)

// needRoot skips where namespaces cannot be made.
func needRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root to make network namespaces")
	}
}

func testOptions(tb testing.TB) Options {
	tb.Helper()
	j, err := journal.Create(tb.TempDir()+"/wirelab", "test", "test")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := j.Remove(); err != nil {
			tb.Error(err)
		}
	})
	return Options{Journal: j, Log: tb.Logf, Backend: software.New(software.Options{})}
}

// impaired gives every link the same impairment in both directions.
func impaired(t Topology, i emul.Impairment) Topology {
	for k := range t.Links {
		t.Links[k].Forward, t.Links[k].Reverse = i, i
	}
	return t
}

// bridged makes bridges of the routers.
func bridged(t Topology) Topology {
	for i := range t.Nodes {
		if t.Nodes[i].Kind == KindRouter {
			t.Nodes[i].Kind = KindBridge
		}
	}
	return t
}

// dumbbell is the graph of topo.Dumbbell with two hosts a side.
func dumbbell() Topology {
	t := Topology{Name: "dumbbell", Nodes: append(nodes(KindRouter, "rl", "rr"), nodes(KindHost, "l1", "l2", "r1", "r2")...),
		Links: []Link{{Name: "bottleneck", A: "rl", B: "rr"}, {Name: "al1", A: "l1", B: "rl"}, {Name: "al2", A: "l2", B: "rl"},
			{Name: "ar1", A: "rr", B: "r1"}, {Name: "ar2", A: "rr", B: "r2"}}}
	i := emul.Impairment{Rate: 100e6, Delay: 20 * time.Millisecond, Queue: unit.Limit{Bytes: 500e3}}
	t.Links[0].Forward, t.Links[0].Reverse = i, i
	return t
}

// BenchmarkUpDown measures building a testbed, every link answering, and taking
// it down. A delay of 1 ms makes every link one of the software backend.
func BenchmarkUpDown(b *testing.B) {
	needRoot(b)
	delay := emul.Impairment{Delay: time.Millisecond}
	for _, c := range []struct {
		name string
		topo Topology
	}{
		{"dumbbell", dumbbell()},
		{"chain/200", chainOf(200)},
		{"chain/1001", chainOf(1001)},
		{"impaired/200", impaired(chainOf(200), delay)},
		{"impaired/1001", impaired(chainOf(1001), delay)},
		{"bridges/200", bridged(chainOf(200))},
	} {
		b.Run(c.name, func(b *testing.B) {
			opt := testOptions(b)
			if !testing.Verbose() {
				opt.Log = nil
			}
			var down time.Duration
			for b.Loop() {
				tb, err := Up(context.Background(), c.topo, opt)
				if err != nil {
					b.Fatal(err)
				}
				start := time.Now()
				if err := tb.Close(); err != nil {
					b.Fatal(err)
				}
				down += time.Since(start)
			}
			b.ReportMetric(down.Seconds()*1e3/float64(b.N), "down-ms")
		})
	}
}
