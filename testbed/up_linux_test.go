package testbed

import (
	"context"
	"os"
	"testing"
	"time"

	"wirelab/emul"
	"wirelab/emul/software"
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

func BenchmarkUpDown(b *testing.B) {
	needRoot(b)
	delay := emul.Impairment{Delay: time.Millisecond}
	for _, c := range []struct {
		name  string
		nodes int
		i     emul.Impairment
	}{
		{"chain/3", 3, emul.Impairment{}},
		{"chain/200", 200, emul.Impairment{}},
		{"chain/1001", 1001, emul.Impairment{}},
		{"delayed/3", 3, delay},
		{"delayed/200", 200, delay},
		{"delayed/1001", 1001, delay},
	} {
		b.Run(c.name, func(b *testing.B) {
			opt := testOptions(b)
			opt.Log = nil
			var down time.Duration
			for b.Loop() {
				tb, err := Up(context.Background(), impaired(chainOf(c.nodes), c.i), opt)
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
