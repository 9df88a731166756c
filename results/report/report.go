// Package report turns the runs of an experiment into pages for people and
// machines: a self-contained HTML page, a Markdown summary for CI, JUnit XML,
// and a table for the terminal.
//
// [Render] makes all files of a directory from one [Input]; [Text] writes the
// terminal's table. Both use valid runs only for numbers and say which runs
// were left out and why. Nothing here reads the clock or the disk, so the same
// input gives the same bytes.
package report

import (
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"wirelab/results"
	"wirelab/results/figure"
	"wirelab/results/stat"
)

// Input is everything a report is made from.
type Input struct {
	Manifest *results.Manifest
	Runs     []*results.Run
	Claims   []results.ClaimResult
	// Figures that the author asked for; without any, some are chosen.
	Figures []figure.Figure
	// Experiment is the exact text that ran.
	Experiment []byte
	// Samples reads the time series of a run; nil leaves them out.
	Samples func(run *results.Run) iter.Seq2[results.Sample, error]
	// Dir is the run directory's path as the reader would type it, for the
	// lines on how to run again; may be empty.
	Dir string
	// Command is the verb's argument that names the experiment ("quickstart",
	// "file.hcl"); may be empty.
	Command string
}

// headline lists the quantities people look for; a metric is shown in short
// tables when its own name (the last part of its path) is here.
var headline = []string{
	"goodput_bps", "fairness_ratio", "rtt_p50_s", "rtt_p99_s", "fct_p50_s", "fct_p99_s",
	"slowdown_p50_ratio", "slowdown_p99_ratio", "delay_variation_p99_s", "loss_ratio", "utilization_ratio", "queueing_delay_p99_s",
}

// maxPerName bounds the metrics of one name in short tables.
const maxPerName = 6

// instruments are the kinds that observe; their metrics come last.
var instruments = []string{"tcp_info", "core_load", "backlog", "perf", "capture"}

// orderedMetrics returns the table's metrics: those of workloads first, then
// of links, then of instruments, each in the order of their definitions, and
// undefined ones at the end.
func orderedMetrics(t *stat.Table, defs []results.NamedMetrics) []string {
	rank := func(kind string) int {
		switch {
		case kind == "link":
			return 1
		case slices.Contains(instruments, kind):
			return 2
		}
		return 0
	}
	ordered := slices.Clone(defs)
	slices.SortStableFunc(ordered, func(a, b results.NamedMetrics) int { return rank(a.Kind) - rank(b.Kind) })
	left := map[string]bool{}
	for _, m := range t.Metrics {
		left[m] = true
	}
	var out []string
	for _, n := range ordered {
		for _, d := range n.Metrics {
			if path := n.Name + "." + d.Name; left[path] {
				out = append(out, path)
				delete(left, path)
			}
		}
	}
	return append(out, slices.Sorted(maps.Keys(left))...)
}

// scaleOf picks one scale for all points of a metric, so that its cells can be
// compared at a glance; a cell far smaller than the largest gets its own.
func scaleOf(t *stat.Table, c *stat.Cell) results.Scale {
	largest := 0.0
	for _, p := range t.Points {
		if o := t.Cell(p.ID, c.Metric); o != nil {
			largest = max(largest, math.Abs(o.Median))
		}
	}
	if own := math.Abs(c.Median); own > 0 && largest > 1000*own {
		largest = own
	}
	return results.ScaleFor(c.Unit, largest)
}

// trivial reports whether a metric says nothing: the same 0 or 1 in every run
// (losses where none are asked for, the fairness of a single flow).
func trivial(t *stat.Table, metric string) bool {
	var first *stat.Cell
	for _, p := range t.Points {
		c := t.Cell(p.ID, metric)
		if c == nil {
			continue
		}
		if first == nil {
			first = c
		}
		if c.Min != c.Max || c.Min != first.Min || c.Min != 0 && c.Min != 1 {
			return false
		}
	}
	return true
}

// headlineMetrics picks the metrics of a short table: those on the author's
// figures, the well-known quantities of each name (of links only in forward
// direction), and whatever a command captured.
func headlineMetrics(in Input, t *stat.Table, metrics []string) []string {
	wanted := map[string]bool{}
	for _, f := range in.Figures {
		for _, y := range f.Y {
			wanted[y] = true
		}
	}
	kinds := map[string]string{}
	for _, n := range manifest(in).Metrics {
		kinds[n.Name] = n.Kind
	}
	perName := map[string]int{}
	return slices.DeleteFunc(slices.Clone(metrics), func(m string) bool {
		if wanted[m] {
			return false
		}
		name, last := splitMetric(m)
		kind, defined := kinds[name]
		known := slices.Contains(headline, last) && !strings.HasSuffix(name, ".reverse")
		if !known && kind != "command" && defined || known && trivial(t, m) {
			return true
		}
		perName[name]++
		return perName[name] > maxPerName
	})
}

// splitMetric cuts a path into its scope name and the metric's own name.
func splitMetric(path string) (name, metric string) {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' {
			return path[:i], path[i+1:]
		}
	}
	return "", path
}

// sweepNames returns the sweep variables in the order of the points.
func sweepNames(points []results.Point) []string {
	var names []string
	for _, p := range points {
		for _, s := range p.Sweep {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// counts tells how many runs ended how.
type counts struct {
	Total, Valid, Invalid, Failed, Missing int
}

func count(m *results.Manifest, runs []*results.Run) counts {
	c := counts{Total: len(runs)}
	for _, r := range runs {
		switch {
		case r.Usable():
			c.Valid++
		case r.HasMetrics():
			c.Invalid++
		default:
			c.Failed++
		}
	}
	if m != nil && len(m.Runs) > c.Total {
		c.Missing = len(m.Runs) - c.Total
		c.Total = len(m.Runs)
	}
	return c
}
