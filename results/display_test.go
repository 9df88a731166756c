package results_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"wirelab/results"
)

func TestFormatValue(t *testing.T) {
	tests := []struct {
		v    float64
		unit string
		want string
	}{
		{47123456, "bit/s", "47.12 Mbit/s"}, {1e9, "bit/s", "1 Gbit/s"}, {999, "bit/s", "999 bit/s"}, {0, "bit/s", "0 bit/s"},
		{0.0412345, "s", "41.23 ms"}, {21.34e-6, "s", "21.34 µs"}, {3e-9, "s", "3 ns"}, {90, "s", "90 s"}, {0.04, "s", "40 ms"}, {-0.002, "s", "-2 ms"},
		{500000, "bytes", "500 kB"}, {0, "bytes", "0 B"}, {1, "packets", "1 packet"}, {0, "packets", "0 packets"}, {12345, "packets", "12345 packets"},
		{0.98765, "1", "0.9877"}, {1, "1", "1"}, {0.00001, "1", "1.00e-05"}, {math.NaN(), "s", "– s"}, {2.5e6, "packets/s", "2.5 Mpackets/s"},
	}
	for _, c := range tests {
		if got := results.FormatValue(c.v, c.unit); got != c.want {
			t.Errorf("FormatValue(%v, %q) = %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestAlike(t *testing.T) {
	ms := results.ScaleFor("s", 0.079)
	if got, want := ms.Alike(0.0791, 0.0792734, 0.0641), []string{"79.10", "79.27", "64.10"}; !slices.Equal(got, want) {
		t.Errorf("Alike = %q, want %q", got, want)
	}
	v, low, high, mean := results.ScaleFor("packets", 3).Row(3, 1, 128, 44)
	if v != "3 packets" || low != "1" || high != "128" || mean != "44" {
		t.Errorf("counts: %q %q %q %q", v, low, high, mean)
	}
	if _, _, _, mean := results.ScaleFor("packets", 3).Row(3, 1, 4, 8.0/3); mean != "2.667" {
		t.Errorf("mean of counts = %q", mean)
	}
	if got := results.ScaleFor("1", 0).Alike(0, 0); !slices.Equal(got, []string{"0", "0"}) {
		t.Errorf("zeros: %q", got)
	}
}

func TestRunDirName(t *testing.T) {
	if got := results.RunDirName(3, "buffer=0.5,cca=reno"); got != "0003-buffer=0.5,cca=reno" {
		t.Errorf("name = %q", got)
	}
	if got := results.RunDirName(0, ""); got != "0000-all" {
		t.Errorf("without sweep: %q", got)
	}
	if got := results.RunDirName(0, "../a/b\x00"); strings.ContainsAny(got, "/\x00") {
		t.Errorf("unsafe name %q", got)
	}
	long := strings.Repeat("é=1,", 100)
	a, b := results.RunDirName(1, long), results.RunDirName(1, long+"x")
	if len(a) > 120 || a == b {
		t.Errorf("long points: %q and %q", a, b)
	}
}

func TestFindMetric(t *testing.T) {
	defs := []results.NamedMetrics{
		{Name: "net.b", Metrics: []results.MetricDef{{Name: "loss_ratio", Unit: "1"}, {Name: "reverse.x_s", Unit: "wrong"}}},
		{Name: "net.b.reverse", Metrics: []results.MetricDef{{Name: "x_s", Unit: "s"}}},
	}
	if d, ok := results.FindMetric(defs, "net.b.reverse.x_s"); !ok || d.Unit != "s" {
		t.Errorf("the longest name must win: %+v, %v", d, ok)
	}
	for _, path := range []string{"net.b", "net.b.y_s", "net.bb.loss_ratio", ""} {
		if d, ok := results.FindMetric(defs, path); ok {
			t.Errorf("FindMetric(%q) = %+v", path, d)
		}
	}
}

func TestUsable(t *testing.T) {
	for _, c := range []struct {
		status          results.Status
		valid           bool
		metrics, usable bool
	}{
		{results.StatusOK, true, true, true}, {results.StatusPartial, true, true, true}, {results.StatusOK, false, true, false}, {results.StatusFailed, true, false, false},
	} {
		r := &results.Run{Status: c.status, Valid: c.valid}
		if r.HasMetrics() != c.metrics || r.Usable() != c.usable {
			t.Errorf("%s, valid %v: %v, %v", c.status, c.valid, r.HasMetrics(), r.Usable())
		}
	}
}
