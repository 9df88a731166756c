package stat_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"wirelab/results"
	"wirelab/results/stat"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func TestMedianRanks(t *testing.T) {
	// Confidence 1 - 2 P(Binomial(n, 1/2) < low), the narrowest that reaches
	// 95 %; from published tables.
	tests := []struct {
		n, low, high int
		confidence   float64
	}{
		{6, 1, 6, 0.96875}, {7, 1, 7, 0.984375}, {8, 1, 8, 0.9921875}, {9, 2, 8, 0.9609375},
		{10, 2, 9, 0.978515625}, {15, 4, 12, 0.96484375}, {20, 6, 15, 0.9586105346679688}, {30, 10, 21, 0.9572261},
	}
	for _, c := range tests {
		low, high, confidence, ok := stat.MedianRanks(c.n, stat.Level)
		if !ok || low != c.low || high != c.high || math.Abs(confidence-c.confidence) > 1e-6 {
			t.Errorf("MedianRanks(%d) = %d, %d, %v, %v; want %d, %d, %v", c.n, low, high, confidence, ok, c.low, c.high, c.confidence)
		}
	}
	for n := range 6 {
		if _, _, _, ok := stat.MedianRanks(n, stat.Level); ok {
			t.Errorf("MedianRanks(%d) gives an interval", n)
		}
	}
	if _, _, c, ok := stat.MedianRanks(5000, stat.Level); !ok || c < 0.95 || c > 0.955 {
		t.Errorf("MedianRanks(5000): confidence %v, %v", c, ok)
	}
}

// TestCoverage draws from a skewed distribution with a known median and counts
// how often the interval encloses it.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{6, 11, 25} {
		_, _, exact, _ := stat.MedianRanks(n, stat.Level)
		const trials = 20000
		inside := 0
		for range trials {
			values := make([]float64, n)
			for i := range values {
				values[i] = rng.ExpFloat64() // median ln 2
			}
			s := stat.Summarize(values)
			if s.Interval.Low <= math.Ln2 && math.Ln2 <= s.Interval.High {
				inside++
			}
		}
		got := float64(inside) / trials
		// Four standard errors of the simulation.
		if tolerance := 4 * math.Sqrt(exact*(1-exact)/trials); math.Abs(got-exact) > tolerance {
			t.Errorf("n = %d: coverage %.4f, want %.4f ± %.4f", n, got, exact, tolerance)
		}
	}
}

func TestSummarize(t *testing.T) {
	s := stat.Summarize([]float64{3, math.NaN(), 1, 2, math.Inf(1), 10})
	if s.N != 4 || s.Median != 2.5 || s.Mean != 4 || s.Min != 1 || s.Max != 10 || !near(s.SD, math.Sqrt(50.0/3)) {
		t.Errorf("summary = %+v", s)
	}
	if s.Interval != nil || s.Why == "" {
		t.Errorf("n = 4 has interval %v, why %q", s.Interval, s.Why)
	}
	if low, high := s.Range(); low != 1 || high != 10 {
		t.Errorf("range = %v, %v", low, high)
	}
	s = stat.Summarize([]float64{5, 1, 4, 2, 3, 6, 9, 8, 7})
	if s.Interval == nil || s.Interval.Low != 2 || s.Interval.High != 8 || s.Why != "" {
		t.Errorf("n = 9: %+v, %q", s.Interval, s.Why)
	}
	if s := stat.Summarize(nil); s.N != 0 || s.Why == "" {
		t.Errorf("empty: %+v", s)
	}
}

func TestQuantileAndJain(t *testing.T) {
	sorted := []float64{1, 2, 4, 8}
	for _, c := range []struct{ q, want float64 }{{0, 1}, {0.5, 3}, {0.9, 6.8}, {1, 8}, {-1, 1}, {2, 8}} {
		if got := stat.Quantile(sorted, c.q); !near(got, c.want) {
			t.Errorf("Quantile(%v) = %v, want %v", c.q, got, c.want)
		}
	}
	if !math.IsNaN(stat.Quantile(nil, 0.5)) || !math.IsNaN(stat.Jain(nil)) || !math.IsNaN(stat.Jain([]float64{0, 0})) {
		t.Error("no values must give NaN")
	}
	if got := stat.Jain([]float64{3, 3, 3}); !near(got, 1) {
		t.Errorf("Jain of equal shares = %v", got)
	}
	if got := stat.Jain([]float64{1, 0, 0, 0}); !near(got, 0.25) {
		t.Errorf("Jain of one winner in four = %v", got)
	}
}

func TestBootstrap(t *testing.T) {
	record := func(seed uint64) [][]int {
		var all [][]int
		stat.Bootstrap(7, 50, seed, func(draw []int) { all = append(all, slices.Clone(draw)) })
		return all
	}
	a, b, c := record(1), record(1), record(2)
	if !slices.EqualFunc(a, b, slices.Equal) {
		t.Error("equal seeds give different draws")
	}
	if slices.EqualFunc(a, c, slices.Equal) {
		t.Error("different seeds give equal draws")
	}
	seen := map[int]bool{}
	for _, d := range a {
		if len(d) != 7 {
			t.Fatalf("a draw of %d", len(d))
		}
		for _, i := range d {
			seen[i] = true
		}
	}
	if len(seen) != 7 {
		t.Errorf("drawn indices: %v, want all seven", seen)
	}
	low, high := stat.PercentileInterval([]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	if !near(low, 0.25) || !near(high, 9.75) {
		t.Errorf("percentile interval %v, %v", low, high)
	}
}

func num(v float64) *float64 { return &v }

func at(buffer, cca string, n float64) results.Point {
	return results.Point{ID: "buffer=" + buffer + ",cca=" + cca, Sweep: []results.SweepValue{
		{Name: "buffer", Text: buffer, Number: num(n)}, {Name: "cca", Text: cca},
	}}
}

func TestTabulate(t *testing.T) {
	var runs []*results.Run
	add := func(p results.Point, rep int, valid bool, v float64) {
		runs = append(runs, &results.Run{
			Index: len(runs), Point: p, Repetition: rep, Status: results.StatusOK, Valid: valid,
			Values: []results.Value{{Metric: "a.goodput_bps", Value: v, Unit: "bit/s"}},
		})
	}
	add(at("10", "reno", 10), 0, true, 5)
	add(at("2", "reno", 2), 0, true, 1)
	add(at("2", "cubic", 2), 0, false, 99)
	add(at("2", "reno", 2), 1, true, 3)
	add(at("2", "reno", 2), 2, true, math.NaN())
	failed := *runs[0]
	failed.Index, failed.Status = len(runs), results.StatusFailed
	runs = append(runs, &failed)
	slices.Reverse(runs)

	table := stat.Tabulate(runs)
	var ids []string
	for _, p := range table.Points {
		ids = append(ids, p.ID)
	}
	if want := []string{"buffer=2,cca=reno", "buffer=2,cca=cubic", "buffer=10,cca=reno"}; !slices.Equal(ids, want) {
		t.Errorf("points %v, want %v (numbers ascend, texts as first met)", ids, want)
	}
	c := table.Cell("buffer=2,cca=reno", "a.goodput_bps")
	if c == nil || c.N != 2 || c.Median != 2 || !slices.Equal(c.Runs, []int{1, 3}) {
		t.Errorf("cell = %+v", c)
	}
	if c := table.Cell("buffer=2,cca=cubic", "a.goodput_bps"); c != nil {
		t.Errorf("an invalid run made the cell %+v", c)
	}
	if c := table.Cell("buffer=10,cca=reno", "a.goodput_bps"); c == nil || c.N != 1 {
		t.Errorf("a failed run is counted: %+v", c)
	}
}
