package claim_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"wirelab/results"
	"wirelab/results/claim"
	"wirelab/results/stat"
)

// grid makes one run per point and repetition; value gives its metric.
func grid(points []string, repetitions int, value func(point string, rep int) float64) []*results.Run {
	var runs []*results.Run
	for rep := range repetitions {
		for _, p := range points {
			runs = append(runs, &results.Run{
				Index: len(runs), Point: results.Point{ID: p}, Repetition: rep, Status: results.StatusOK, Valid: true,
				Values: []results.Value{{Metric: "m", Value: value(p, rep), Unit: "1"}},
			})
		}
	}
	return runs
}

// medianAbove claims that the median of m is above limit.
func medianAbove(name string, limit float64) claim.Claim {
	return claim.Claim{Name: name, Eval: func(runs []*results.Run) (claim.Estimate, error) {
		var values []float64
		for _, r := range runs {
			v, ok := r.Lookup("m")
			if !ok {
				return claim.Estimate{}, errors.New("m is missing")
			}
			values = append(values, v.Value)
		}
		m := stat.Median(values)
		return claim.Estimate{Value: &m, Condition: m > limit}, nil
	}}
}

func TestVerdicts(t *testing.T) {
	runs := grid([]string{"p"}, 10, func(_ string, rep int) float64 { return float64(rep) }) // 0 to 9
	tests := []struct {
		limit float64
		want  results.Verdict
	}{{-1, results.Holds}, {4, results.Undecided}, {5, results.Undecided}, {20, results.Fails}}
	for _, c := range tests {
		got := claim.Judge([]claim.Claim{medianAbove("c", c.limit)}, runs, 1, claim.Options{})[0]
		if got.Verdict != c.want {
			t.Errorf("median > %v: %q (%s), want %q", c.limit, got.Verdict, got.Reason, c.want)
		}
		if got.N != 10 || got.Value == nil || *got.Value != 4.5 {
			t.Errorf("median > %v: n %d, value %v", c.limit, got.N, got.Value)
		}
		if got.Low == nil || !(*got.Low >= 0 && *got.Low < 4.5 && *got.High > 4.5 && *got.High <= 9) {
			t.Errorf("median > %v: interval %v, %v", c.limit, got.Low, got.High)
		}
		if (got.Verdict == results.Undecided) != (got.Reason != "") {
			t.Errorf("median > %v: %q with reason %q", c.limit, got.Verdict, got.Reason)
		}
	}
}

// TestPairs checks that one draw serves all points: the difference of two
// points that share their noise has no spread at all.
func TestPairs(t *testing.T) {
	noise := []float64{0, 10, -20, 35, 4, -7, 60}
	runs := grid([]string{"a", "b"}, len(noise), func(p string, rep int) float64 {
		if p == "a" {
			return noise[rep] + 1
		}
		return noise[rep]
	})
	difference := claim.Claim{Name: "a is above b", Eval: func(runs []*results.Run) (claim.Estimate, error) {
		sums := map[string]float64{}
		for _, r := range runs {
			v, _ := r.Lookup("m")
			sums[r.Point.ID] += v.Value
		}
		d := (sums["a"] - sums["b"]) / float64(len(runs)/2)
		return claim.Estimate{Value: &d, Condition: d > 0.5}, nil
	}}
	got := claim.Judge([]claim.Claim{difference}, runs, 3, claim.Options{})[0]
	if got.Verdict != results.Holds || math.Abs(*got.Low-1) > 1e-9 || math.Abs(*got.High-1) > 1e-9 {
		t.Errorf("%q, interval %v to %v; want holds, 1 to 1", got.Verdict, *got.Low, *got.High)
	}
}

func TestDeterministic(t *testing.T) {
	runs := grid([]string{"p", "q"}, 8, func(p string, rep int) float64 { return float64(rep*7%5) + float64(len(p)) })
	claims := []claim.Claim{medianAbove("one", 2.5), medianAbove("two", 3)}
	a := claim.Judge(claims, runs, 9, claim.Options{})
	slices.Reverse(runs)
	slices.Reverse(claims)
	b := claim.Judge(claims, runs, 9, claim.Options{})
	for i := range a {
		x, y := a[i], b[1-i]
		if x.Verdict != y.Verdict || *x.Low != *y.Low || *x.High != *y.High || x.Reason != y.Reason {
			t.Errorf("%s: %+v and %+v", x.Name, x, y)
		}
	}
}

func TestTooFewRepetitions(t *testing.T) {
	runs := grid([]string{"p", "q"}, 6, func(string, int) float64 { return 1 })
	runs[5].Valid = false // of q
	got := claim.Judge([]claim.Claim{medianAbove("c", 0)}, runs, 1, claim.Options{})[0]
	if got.Verdict != results.Undecided || got.N != 5 || !strings.Contains(got.Reason, "5 valid repetition(s) of q") {
		t.Errorf("%q, n %d, %q", got.Verdict, got.N, got.Reason)
	}
	if got.Value == nil || got.Low != nil {
		t.Errorf("value %v, low %v; want the estimate without interval", got.Value, got.Low)
	}

	inner := medianAbove("only p", 0)
	only := inner
	only.Eval = func(all []*results.Run) (claim.Estimate, error) {
		used := slices.DeleteFunc(slices.Clone(all), func(r *results.Run) bool { return r.Point.ID != "p" })
		e, err := inner.Eval(used)
		e.Used = used
		return e, err
	}
	if got := claim.Judge([]claim.Claim{only}, runs, 1, claim.Options{})[0]; got.Verdict != results.Holds || got.N != 6 {
		t.Errorf("a claim on p alone: %q, n %d, %s", got.Verdict, got.N, got.Reason)
	}

	once := medianAbove("once", 0)
	once.NoInterval = true
	if got := claim.Judge([]claim.Claim{once}, runs[:1], 1, claim.Options{})[0]; got.Verdict != results.Holds || got.Low != nil {
		t.Errorf("interval = none with one run: %q %v", got.Verdict, got.Low)
	}
	missing := claim.Options{Points: []results.Point{{ID: "never made"}}}
	if got := claim.Judge([]claim.Claim{medianAbove("c", 0)}, runs[:5], 1, missing)[0]; got.Verdict != results.Undecided || got.N != 0 {
		t.Errorf("a point without any run: %q, n %d", got.Verdict, got.N)
	}
}

func TestNoVerdict(t *testing.T) {
	runs := grid([]string{"p"}, 8, func(string, int) float64 { return 1 })
	untestable := medianAbove("u", 0)
	untestable.NotTestable = "host.cores >= 4 is false"
	broken := claim.Claim{Name: "b", Eval: func([]*results.Run) (claim.Estimate, error) {
		return claim.Estimate{}, errors.New("division by zero")
	}}
	nan := claim.Claim{Name: "n", Eval: func([]*results.Run) (claim.Estimate, error) {
		v := math.NaN()
		return claim.Estimate{Value: &v, Condition: true}, nil
	}}
	got := claim.Judge([]claim.Claim{untestable, broken, nan}, runs, 1, claim.Options{})
	for i, want := range []struct {
		verdict results.Verdict
		reason  string
	}{
		{results.NotTestable, "host.cores >= 4 is false"},
		{results.Undecided, "division by zero"},
		{results.Undecided, "not finite"},
	} {
		if got[i].Verdict != want.verdict || !strings.Contains(got[i].Reason, want.reason) || got[i].Value != nil && i > 0 {
			t.Errorf("%s: %q, %q", got[i].Name, got[i].Verdict, got[i].Reason)
		}
	}
	for _, r := range runs {
		r.Valid = false
	}
	if got := claim.Judge([]claim.Claim{medianAbove("c", 0)}, runs, 1, claim.Options{})[0]; got.Verdict != results.Undecided || got.Reason != "no valid run" {
		t.Errorf("without valid runs: %q, %q", got.Verdict, got.Reason)
	}
}

func TestSmoke(t *testing.T) {
	runs := grid([]string{"p"}, 8, func(string, int) float64 { return 1 })
	c := []claim.Claim{medianAbove("c", 0)}
	if got := claim.Judge(c, runs, 1, claim.Options{Smoke: true})[0]; got.Verdict != results.Undecided || !strings.Contains(got.Reason, "here it holds") {
		t.Errorf("smoke: %q, %q", got.Verdict, got.Reason)
	}
	if got := claim.Judge(c, runs, 1, claim.Options{Smoke: true, SmokeClaims: true})[0]; got.Verdict != results.Holds {
		t.Errorf("smoke with claims: %q, %q", got.Verdict, got.Reason)
	}
}
