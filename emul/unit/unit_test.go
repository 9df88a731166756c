package unit

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"100mbit": 100e6, "2.5gbit": 2.5e9, "1bit": 1, "64 kbit": 64e3, "10Mbit/s": 10e6, "1e3kbit": 1e6, "0mbit": 0, "1.5Tbit": 1.5e12,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("ParseRate(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for text, hint := range map[string]string{
		"100":      `did you mean "100mbit"`,
		"100mbps":  "bytes per second",
		"100mb":    "known units",
		"-1mbit":   "between",
		"0.1bit":   "at least 1bit",
		"1e30gbit": "between",
		"":         "not a rate",
		"fast":     "not a rate",
		"NaNmbit":  "not a rate",
		"mbit":     "not a rate",
	} {
		_, err := ParseRate(text)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseRate(%q): %v, want an error with %q", text, err, hint)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{"1500B": 1500, "64KiB": 65536, "1MB": 1e6, "2 GiB": 2 << 30, "0.5kB": 500} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("ParseSize(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"1500", "-1B", "1.5mbit", "", "B"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("ParseSize(%q) = %v, want an error", text, got)
		}
	}
}

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]Limit{
		"100pkt": {Packets: 100}, "64KiB": {Bytes: 65536}, "50ms": {Time: 50 * time.Millisecond}, "1s": {Time: time.Second}, "7 packets": {Packets: 7},
	} {
		if got, err := ParseLimit(text); err != nil || got != want {
			t.Errorf("ParseLimit(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"100", "1.5pkt", "0pkt", "0.1B", "0.1ns", "-3ms", "10 apples", ""} {
		if got, err := ParseLimit(text); err == nil {
			t.Errorf("ParseLimit(%q) = %+v, want an error", text, got)
		}
	}
}

func TestParseDurationAndRatio(t *testing.T) {
	if d, err := ParseDuration("40ms"); err != nil || d != 40*time.Millisecond {
		t.Errorf("40ms = %v, %v", d, err)
	}
	for _, text := range []string{"40", "-1s", "1 fortnight"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", text, d)
		}
	}
	for text, want := range map[string]Ratio{"2%": 0.02, "0.02": 0.02, "100 %": 1, "0": 0} {
		if got, err := ParseRatio(text); err != nil || got != want {
			t.Errorf("ParseRatio(%q) = %v, %v, want %v", text, float64(got), err, float64(want))
		}
	}
	if r, err := ParseRatio("2pkt"); err == nil {
		t.Errorf("2pkt = %v, want an error", r)
	}
}

// TestRoundTrip wants every text form to parse back to its value.
func TestRoundTrip(t *testing.T) {
	for _, r := range []Rate{1, 999, 1000, 100e6, 2.5e9, 40e9} {
		if got, err := ParseRate(r.String()); err != nil || got != r {
			t.Errorf("%v parses back to %v, %v", r, got, err)
		}
	}
	for _, s := range []Size{1, 1500, 65536, 3 << 20, 1e6} {
		if got, err := ParseSize(s.String()); err != nil || got != s {
			t.Errorf("%v parses back to %v, %v", s, got, err)
		}
	}
	for _, l := range []Limit{{Packets: 3}, {Bytes: 1514}, {Time: 20 * time.Millisecond}} {
		if got, err := ParseLimit(l.String()); err != nil || got != l {
			t.Errorf("%v parses back to %+v, %v", l, got, err)
		}
	}
}

func TestBDP(t *testing.T) {
	if got := BDP(100e6, 40*time.Millisecond, 1, 1514); got != 500000 {
		t.Errorf("100 Mbit/s x 40 ms = %d B, want 500000", got)
	}
	if got := BDP(1e6, time.Millisecond, 1, 1514); got != 3028 {
		t.Errorf("a tiny BDP = %d B, want two packets", got)
	}
}

func TestBytesAt(t *testing.T) {
	for _, c := range []struct {
		limit Limit
		rate  Rate
		want  Size
		ok    bool
	}{
		{Limit{Bytes: 9000}, 0, 9000, true},
		{Limit{Packets: 2}, 0, 3028, true},
		{Limit{Time: 100 * time.Millisecond}, 300e3, 3750, true},
		{Limit{Time: 100 * time.Millisecond}, 0, 0, false},
		{Limit{}, 1e6, 0, false},
	} {
		if got, ok := c.limit.BytesAt(c.rate, 1514); got != c.want || ok != c.ok {
			t.Errorf("%v at %v = %v, %v, want %v, %v", c.limit, c.rate, got, ok, c.want, c.ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"100mbit", "1e9", "64KiB", "-", "50ms", "1e1e1", "٣mbit", "1_000bit", "0x10bit"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if r, err := ParseRate(s); err == nil && r < 0 {
			t.Errorf("%q is a rate of %d", s, r)
		}
		if v, err := ParseSize(s); err == nil && v < 0 {
			t.Errorf("%q is a size of %d", s, v)
		}
		if l, err := ParseLimit(s); err == nil && l.IsZero() {
			t.Errorf("%q is a limit of nothing", s)
		}
	})
}
