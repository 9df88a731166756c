package hist

import "testing"

func TestSubLeavesWhatCameLater(t *testing.T) {
	var early, all, later Histogram
	for v := int64(1); v <= 1000; v++ {
		early.Record(v * 37)
		all.Record(v * 37)
	}
	for v := int64(1); v <= 500; v++ {
		later.Record(v*211 + 40_000)
		all.Record(v*211 + 40_000)
	}
	all.Sub(&early)
	if all.Count() != later.Count() || all.Mean() != later.Mean() || all.Max() != later.Max() {
		t.Fatalf("count %d mean %g max %d, want %d %g %d",
			all.Count(), all.Mean(), all.Max(), later.Count(), later.Mean(), later.Max())
	}
	for _, q := range []float64{0.01, 0.5, 0.99} {
		if got, want := all.Quantile(q), later.Quantile(q); got != want {
			t.Errorf("quantile %g is %d, want %d", q, got, want)
		}
	}
}

func TestSubOfEverythingIsEmpty(t *testing.T) {
	var a, b Histogram
	a.Record(5)
	b.Record(5)
	b.Record(9) // not an earlier state: must not wrap around
	a.Sub(&b)
	if a != (Histogram{}) {
		t.Fatalf("not empty: %d values", a.Count())
	}
	a.Record(7)
	a.Sub(nil)
	if a.Count() != 1 {
		t.Fatal("taking nothing away changed the histogram")
	}
}

func TestSubBoundsMaximumThatDidNotGrow(t *testing.T) {
	var early, all Histogram
	early.Record(1_000_000)
	all.Record(1_000_000)
	all.Record(2000)
	all.Sub(&early)
	if all.Max() < 2000 || all.Max() > 2000+2000/32 {
		t.Fatalf("maximum is %d, want about 2000", all.Max())
	}
}
