package results

import (
	"math"
	"strconv"
	"strings"
)

// Scale turns values of a base unit into numbers that people read easily. The
// stored value is never scaled.
type Scale struct {
	Factor float64 // multiply a base value by this
	Unit   string  // the scaled unit, "" for plain numbers
}

type step struct {
	at   float64 // the smallest base value the step is used for
	unit string
}

// scaleSteps lists, per base unit, the scaled units from large to small.
var scaleSteps = map[string][]step{
	"bit/s":     {{1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}, {0, "bit/s"}},
	"packets/s": {{1e6, "Mpackets/s"}, {1e3, "kpackets/s"}, {0, "packets/s"}},
	"1/s":       {{1e6, "M/s"}, {1e3, "k/s"}, {0, "/s"}},
	"bytes":     {{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {0, "B"}},
	"s":         {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {0, "ns"}},
	"Hz":        {{1e9, "GHz"}, {1e6, "MHz"}, {1e3, "kHz"}, {0, "Hz"}},
	"J":         {{1e3, "kJ"}, {1, "J"}, {1e-3, "mJ"}, {0, "µJ"}},
}

var unitFactor = map[string]float64{
	"Tbit/s": 1e-12, "Gbit/s": 1e-9, "Mbit/s": 1e-6, "kbit/s": 1e-3,
	"Mpackets/s": 1e-6, "kpackets/s": 1e-3, "M/s": 1e-6, "k/s": 1e-3,
	"GB": 1e-9, "MB": 1e-6, "kB": 1e-3, "ms": 1e3, "µs": 1e6, "ns": 1e9,
	"GHz": 1e-9, "MHz": 1e-6, "kHz": 1e-3, "kJ": 1e-3, "mJ": 1e3, "µJ": 1e6,
}

// unitAliases are other spellings of base units that metrics may declare.
var unitAliases = map[string]string{
	"bps": "bit/s", "B": "bytes", "byte": "bytes", "ratio": "1", "count": "",
	"seconds": "s", "second": "s", "1": "",
}

// ScaleFor picks the scaled unit in which a value of the given magnitude (in
// the base unit) is a number between 1 and 1000 where possible. Units without
// prefixes keep a factor of 1; the unit "1" of ratios shows as nothing.
func ScaleFor(unit string, magnitude float64) Scale {
	if a, ok := unitAliases[unit]; ok {
		unit = a
	}
	steps, ok := scaleSteps[unit]
	magnitude = math.Abs(magnitude)
	if !ok {
		return Scale{Factor: 1, Unit: unit}
	}
	pick := steps[len(steps)-1].unit
	if magnitude == 0 || math.IsNaN(magnitude) {
		pick = unit
		if unit == "bytes" {
			pick = "B"
		}
	} else {
		for _, s := range steps {
			if magnitude >= s.at*(1-1e-9) {
				pick = s.unit
				break
			}
		}
	}
	f, ok := unitFactor[pick]
	if !ok {
		f = 1
	}
	return Scale{Factor: f, Unit: pick}
}

// Number formats a base value in the scale, with four significant digits and
// no exponent within reason; "–" stands for a value that is not finite.
func (s Scale) Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return formatShort(v * s.Factor)
}

// Format formats a base value with its unit: "47.12 Mbit/s", "1 packet".
func (s Scale) Format(v float64) string { return s.withUnit(s.Number(v)) }

func (s Scale) withUnit(number string) string {
	switch {
	case s.Unit == "":
		return number
	case number == "1" && len(s.Unit) > 3 && !strings.Contains(s.Unit, "/"):
		return number + " " + strings.TrimSuffix(s.Unit, "s")
	}
	return number + " " + s.Unit
}

// Alike formats base values that stand side by side with equal decimals: as
// many as give the largest four significant digits, none when all are whole.
func (s Scale) Alike(values ...float64) []string {
	largest, whole := 0.0, true
	for _, v := range values {
		v *= s.Factor
		largest = max(largest, math.Abs(v))
		whole = whole && v == math.Trunc(v)
	}
	out := make([]string, len(values))
	decimals := 0
	if largest > 0 && !whole {
		decimals = max(0, 3-int(math.Floor(math.Log10(largest))))
	}
	for i, v := range values {
		if largest >= 1e7 || decimals > 7 {
			out[i] = s.Number(v)
			continue
		}
		out[i] = strconv.FormatFloat(v*s.Factor, 'f', decimals, 64)
	}
	return out
}

// Row formats a cell: value with its unit, range, and mean. Counts stay whole,
// except for their mean.
func (s Scale) Row(value, low, high, mean float64) (valueText, lowText, highText, meanText string) {
	t := s.Alike(value, low, high)
	meanText = s.Number(mean)
	if i := strings.IndexByte(t[0], '.'); i >= 0 && math.Abs(mean*s.Factor) < 1e6 {
		meanText = strconv.FormatFloat(mean*s.Factor, 'f', len(t[0])-i-1, 64)
	}
	return s.withUnit(t[0]), t[1], t[2], meanText
}

// FormatValue formats one value in the scale that fits it.
func FormatValue(v float64, unit string) string { return ScaleFor(unit, v).Format(v) }

// formatShort writes v with four significant digits; integers below a million
// stay whole, very large and very small ones get an exponent.
func formatShort(v float64) string {
	a := math.Abs(v)
	switch {
	case v == 0:
		return "0"
	case a >= 1e7 || a < 1e-4:
		return strconv.FormatFloat(v, 'e', 2, 64)
	case a >= 1000 || v == math.Trunc(v):
		return strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	}
	digits := 3 - int(math.Floor(math.Log10(a)))
	t := strconv.FormatFloat(v, 'f', max(digits, 0), 64)
	if strings.Contains(t, ".") {
		t = strings.TrimRight(strings.TrimRight(t, "0"), ".")
	}
	return t
}

// ExactFloat formats v so that reading it back gives the same bits.
func ExactFloat(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
