package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"wirelab/emul/hist"
	"wirelab/results"
	"wirelab/results/figure"
	"wirelab/results/stat"
)

// medianTable is the table of cells.
type medianTable struct {
	Sweep  []string
	Groups []medianGroup
	Rows   int
	Ranges bool // some cell shows a range in place of an interval
	Flags  bool
}

// medianGroup is one metric: a row per point.
type medianGroup struct {
	Metric, Anchor, Definition string
	Rows                       []medianRow
}

type medianRow struct {
	Sweep                        []string
	Median, Low, High, Mean      string
	N                            int
	IsRange, Single              bool
	Confidence, Runs, Conditions string
	Flag                         string // doubts about runs of the cell
	Strip                        template.HTML
}

// maxStrips bounds the small drawings of one page.
const maxStrips = 400

// fewRows is the size up to which one table shows everything.
const fewRows = 24

// medianTables returns the table of headline metrics and the table of all, nil
// when the first shows everything.
func medianTables(d *data) (short, all *medianTable) {
	if len(d.metrics)*len(d.table.Points) <= fewRows || len(d.short) == 0 {
		return newMedianTable(d, d.metrics, true), nil
	}
	short = newMedianTable(d, d.short, true)
	if len(d.short) == len(d.metrics) {
		return short, nil
	}
	return short, newMedianTable(d, d.metrics, false)
}

func newMedianTable(d *data, metrics []string, strips bool) *medianTable {
	t := &medianTable{Sweep: d.sweep}
	for _, m := range metrics {
		g := medianGroup{Metric: m, Anchor: anchor(m)}
		if def, ok := results.FindMetric(d.Manifest.Metrics, m); ok {
			g.Definition = def.Definition
		}
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range d.table.Points {
			if c := d.table.Cell(p.ID, m); c != nil {
				low, high = min(low, c.Min), max(high, c.Max)
			}
		}
		for _, p := range d.table.Points {
			c := d.table.Cell(p.ID, m)
			if c == nil {
				continue
			}
			row := newMedianRow(d, p, c)
			if strips && t.Rows < maxStrips && d.counts.Valid > len(d.table.Points) {
				row.Strip = template.HTML(figure.Strip(c.Summary, low, high))
			}
			t.Ranges = t.Ranges || row.IsRange
			t.Flags = t.Flags || row.Flag != ""
			t.Rows++
			g.Rows = append(g.Rows, row)
		}
		t.Groups = append(t.Groups, g)
	}
	return t
}

func newMedianRow(d *data, p results.Point, c *stat.Cell) medianRow {
	scale := scaleOf(d.table, c)
	low, high := c.Range()
	row := medianRow{
		N: c.N, IsRange: c.Interval == nil && c.N > 1, Single: c.N == 1, Runs: runList(c.Runs),
	}
	row.Median, row.Low, row.High, row.Mean = scale.Row(c.Median, low, high, c.Mean)
	if c.Interval != nil {
		row.Confidence = fmt.Sprintf("exact confidence %.1f %%", 100*c.Interval.Confidence)
	} else {
		row.Confidence = "range of the values: " + c.Why
	}
	for _, name := range d.sweep {
		row.Sweep = append(row.Sweep, p.SweepText(name))
	}
	row.Conditions = conditions(d, c.Runs)
	var flags []string
	for _, r := range d.Runs {
		if slices.Contains(c.Runs, r.Index) {
			for _, n := range r.Notes {
				flags = append(flags, fmt.Sprintf("run %d: %s", r.Index, n))
			}
		}
	}
	row.Flag = strings.Join(flags, "\n")
	return row
}

// conditionMetrics are the host's metrics that stand beside every cell, with
// the words for them.
var conditionMetrics = []struct{ metric, words string }{
	{"load_max_ratio", "busiest core"}, {"steal_ratio", "steal"}, {"steal_max_ratio", "steal"}, {"run_queue_wait_max_ratio", "run-queue wait"},
}

// conditions says how loaded the host was in the given runs, at worst.
func conditions(d *data, runs []int) string {
	worst := make([]float64, len(conditionMetrics))
	found := make([]bool, len(conditionMetrics))
	thread := 0.0
	for _, r := range d.Runs {
		if !slices.Contains(runs, r.Index) {
			continue
		}
		for _, v := range r.Values {
			_, last := splitMetric(v.Metric)
			for i, c := range conditionMetrics {
				if last == c.metric {
					worst[i], found[i] = max(worst[i], v.Value), true
				}
			}
		}
		for _, a := range r.Actors {
			thread = max(thread, a.MaxCoreLoad)
		}
	}
	var parts []string
	for i, c := range conditionMetrics {
		if found[i] {
			parts = append(parts, fmt.Sprintf("%s %.1f %%", c.words, 100*worst[i]))
		}
	}
	if thread > 0 {
		parts = append(parts, fmt.Sprintf("busiest generator thread %.1f %% of a core", 100*thread))
	}
	return strings.Join(parts, ", ")
}

// anchor is the id of a metric's definition.
func anchor(metric string) string {
	return "def-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, metric)
}

// distributionView is a histogram's plot with its quantiles.
type distributionView struct {
	Name string
	SVG  template.HTML
	Rows []quantileRow
}

type quantileRow struct {
	Point, N string
	Values   []string
}

var quantiles = []float64{0.5, 0.9, 0.99, 0.999}

// maxDistributions bounds the plots of one page.
const maxDistributions = 8

// distributions merges the histograms of the valid repetitions of each point.
func distributions(d *data) []distributionView {
	type key struct{ name, point string }
	merged := map[key]*hist.Histogram{}
	scopes := scopeNames(d.Manifest)
	var names []string
	for _, r := range d.Runs {
		if !r.Usable() {
			continue
		}
		for _, rec := range r.Records {
			if rec.Hist == nil || rec.Hist.Count() == 0 || rec.Flow >= 0 {
				continue
			}
			name := seriesPath(scopes, rec.Actor, rec.Name)
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			k := key{name, r.Point.ID}
			if merged[k] == nil {
				merged[k] = &hist.Histogram{}
			}
			merged[k].Merge(rec.Hist)
		}
	}
	var out []distributionView
	for _, name := range names[:min(len(names), maxDistributions)] {
		_, last := splitMetric(name)
		unit := ""
		if strings.HasSuffix(last, "_s") {
			unit = "s"
		}
		v := distributionView{Name: name}
		var lines []figure.Distribution
		for _, p := range d.table.Points {
			h := merged[key{name, p.ID}]
			if h == nil {
				continue
			}
			lines = append(lines, figure.Distribution{Label: p.Label(), Hist: h})
			row := quantileRow{Point: p.Label(), N: fmt.Sprint(h.Count())}
			for _, q := range quantiles {
				row.Values = append(row.Values, results.FormatValue(float64(h.Quantile(q))*1e-9, unit))
			}
			row.Values = append(row.Values, results.FormatValue(float64(h.Max())*1e-9, unit))
			v.Rows = append(v.Rows, row)
		}
		v.SVG = inline(figure.CDF(figure.Figure{Name: name, Title: "Distribution of " + name, X: last}, unit, lines))
		out = append(out, v)
	}
	return out
}
