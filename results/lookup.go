package results

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// maxPointName keeps directory names well under the 255 bytes of file systems.
const maxPointName = 96

// DirName is the name of the run's directory within runs/: its number and its
// point, "0003-buffer=0.5". Long points are cut and end in a hash.
func (r *Run) DirName() string { return RunDirName(r.Index, r.Point.ID) }

// RunDirName is [Run.DirName] for a run that may not exist yet.
func RunDirName(index int, point string) string {
	name := strings.Map(func(c rune) rune {
		if c < 0x20 || strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, point)
	if name == "" {
		name = "all"
	}
	if len(name) > maxPointName {
		sum := sha256.Sum256([]byte(point))
		name = strings.ToValidUTF8(name[:maxPointName], "") + "~" + hex.EncodeToString(sum[:4])
	}
	return fmt.Sprintf("%04d-%s", index, name)
}

// HasMetrics reports whether the run ended so that it may carry metrics: ok or
// partial.
func (r *Run) HasMetrics() bool { return r.Status == StatusOK || r.Status == StatusPartial }

// Usable reports whether the run's values count: it has metrics and is valid.
func (r *Run) Usable() bool { return r.Valid && r.HasMetrics() }

// Lookup returns the value of a metric path.
func (r *Run) Lookup(metric string) (Value, bool) {
	for _, v := range r.Values {
		if v.Metric == metric {
			return v, true
		}
	}
	return Value{}, false
}

// SweepText returns the text of one sweep variable; "" where the point has no
// such variable.
func (p Point) SweepText(name string) string {
	for _, s := range p.Sweep {
		if s.Name == name {
			return s.Text
		}
	}
	return ""
}

// Label names the point for people: "buffer = 0.5, cca = reno", "" without a
// sweep.
func (p Point) Label() string {
	parts := make([]string, len(p.Sweep))
	for i, s := range p.Sweep {
		parts[i] = s.Name + " = " + s.Text
	}
	return strings.Join(parts, ", ")
}

// FindMetric returns the definition of a metric path such as
// "cubic.goodput_bps": the longest scope name that prefixes it is used.
func FindMetric(defs []NamedMetrics, path string) (MetricDef, bool) {
	best, found := MetricDef{}, false
	length := -1
	for _, n := range defs {
		rest, ok := strings.CutPrefix(path, n.Name+".")
		if !ok || len(n.Name) <= length {
			continue
		}
		for _, d := range n.Metrics {
			if d.Name == rest {
				best, found, length = d, true, len(n.Name)
				break
			}
		}
	}
	return best, found
}
