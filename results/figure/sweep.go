package figure

import (
	"slices"
	"strings"

	"wirelab/emul/unit"
	"wirelab/results"
)

// quantity is a kind of sweep value that has a unit.
type quantity struct {
	unit  string
	parse func(text string) (float64, bool)
}

var quantities = []quantity{
	{"bit/s", func(t string) (float64, bool) { v, err := unit.ParseRate(t); return float64(v), err == nil }},
	{"s", func(t string) (float64, bool) { v, err := unit.ParseDuration(t); return v.Seconds(), err == nil }},
	{"bytes", func(t string) (float64, bool) { v, err := unit.ParseSize(t); return float64(v), err == nil }},
	{"packets", func(t string) (float64, bool) {
		v, err := unit.ParseLimit(t)
		return float64(v.Packets), err == nil && v.Packets > 0
	}},
	{"%", func(t string) (float64, bool) {
		v, err := unit.ParseRatio(t)
		return float64(v) * 100, err == nil && strings.HasSuffix(strings.TrimSpace(t), "%")
	}},
}

// sweepScale says where the values of one sweep variable lie on an axis.
type sweepScale struct {
	name    string
	numeric bool
	unit    string
	texts   []string // distinct, in the order of the points
	numbers []float64
}

// scaleOf reads the values of a sweep variable over points: as numbers, as
// quantities with a unit, or, where neither fits all of them, as categories.
func scaleOf(name string, points []results.Point) sweepScale {
	s := sweepScale{name: name}
	values := map[string]*float64{}
	for _, p := range points {
		for _, v := range p.Sweep {
			if v.Name == name && !slices.Contains(s.texts, v.Text) {
				s.texts = append(s.texts, v.Text)
				values[v.Text] = v.Number
			}
		}
	}
	if len(s.texts) == 0 {
		return s
	}
	if numbers, ok := parseAll(s.texts, func(t string) (float64, bool) {
		if n := values[t]; n != nil {
			return *n, true
		}
		return 0, false
	}); ok {
		s.numeric, s.numbers = true, numbers
		return s
	}
	for _, q := range quantities {
		if numbers, ok := parseAll(s.texts, q.parse); ok {
			s.numeric, s.unit, s.numbers = true, q.unit, numbers
			return s
		}
	}
	return s
}

func parseAll(texts []string, parse func(string) (float64, bool)) ([]float64, bool) {
	numbers := make([]float64, len(texts))
	for i, t := range texts {
		v, ok := parse(t)
		if !ok {
			return nil, false
		}
		numbers[i] = v
	}
	return numbers, true
}

// position returns the axis value of a text: its number, or its place among
// the categories.
func (s sweepScale) position(text string) float64 {
	i := slices.Index(s.texts, text)
	if s.numeric && i >= 0 {
		return s.numbers[i]
	}
	return float64(i)
}

// axis makes the horizontal axis for the values.
func (s sweepScale) axis(log bool, width float64) axis {
	if !s.numeric {
		texts := make([]string, len(s.texts))
		for i, t := range s.texts {
			texts[i] = clip(t, width/float64(len(s.texts))-6)
		}
		return categoryAxis(s.name, texts)
	}
	xs := slices.Compact(slices.Sorted(slices.Values(s.numbers)))
	return sweepAxis(s.name, s.unit, xs, log, width)
}

// UnitOf returns a metric's unit: as defined, else as the name's last part says.
func UnitOf(defs []results.NamedMetrics, path string) string {
	if d, ok := results.FindMetric(defs, path); ok {
		return d.Unit
	}
	switch path[strings.LastIndexByte(path, '_')+1:] {
	case "bps":
		return "bit/s"
	case "s":
		return "s"
	case "bytes":
		return "bytes"
	case "packets":
		return "packets"
	}
	return ""
}

// cut splits a path at its last dot: scope name, metric name.
func cut(path string) (name, metric string) {
	i := strings.LastIndexByte(path, '.')
	return path[:max(i, 0)], path[i+1:]
}

// unitSuffixes are dropped from a metric's name on an axis, where the unit
// stands anyway.
var unitSuffixes = []string{"_bps", "_bytes", "_packets", "_ratio", "_count", "_s"}

// plainName turns "rtt_p99_s" into "rtt p99".
func plainName(metric string) string {
	for _, s := range unitSuffixes {
		if rest, ok := strings.CutSuffix(metric, s); ok {
			metric = rest
			break
		}
	}
	return strings.ReplaceAll(metric, "_", " ")
}
