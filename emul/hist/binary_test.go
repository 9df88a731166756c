package hist_test

import (
	"testing"

	"wirelab/emul/hist"
)

func TestBinary(t *testing.T) {
	for _, values := range [][]int64{nil, {0}, {5, 5, 100, 1 << 40, 1 << 62}} {
		var h, back hist.Histogram
		for _, v := range values {
			h.RecordN(v, 3)
		}
		b := h.AppendBinary([]byte("before"))
		rest, err := back.DecodeBinary(append(b[6:], "after"...))
		if err != nil || string(rest) != "after" || back != h {
			t.Errorf("%v: %q left, %v", values, rest, err)
		}
	}
}

func FuzzBinary(f *testing.F) {
	var h hist.Histogram
	h.RecordN(1000, 5)
	h.RecordN(77, 1)
	f.Add(h.AppendBinary(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again hist.Histogram
		if _, err := h.DecodeBinary(b); err != nil {
			return
		}
		if _, err := again.DecodeBinary(h.AppendBinary(nil)); err != nil || again.Count() != h.Count() {
			t.Fatalf("read again: %d values, %v, want %d", again.Count(), err, h.Count())
		}
		for _, q := range []float64{0, 0.5, 1} {
			h.Quantile(q)
		}
	})
}
