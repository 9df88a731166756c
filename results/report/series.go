package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"wirelab/results"
	"wirelab/results/figure"
)

// seriesView is the folded section of time series.
type seriesView struct {
	Runs  []seriesRun
	Notes []string
}

type seriesRun struct {
	Title  string
	Charts []template.HTML
	Error  string
}

// Bounds of the section, so that the page stays a few megabytes.
const (
	seriesBudget   = 2_200_000 // bytes of drawings
	maxSeriesRuns  = 40
	maxSeriesChart = 9 // per run
	maxChartPaths  = 6
	figureSlices   = 240
)

// collected holds the reduced time series of all runs, read once.
type collected struct {
	byRun  map[int][]*figure.Trace
	errors map[int]error
	all    []*figure.Trace
}

// collect reads every run that a time figure or the series section needs. The
// first runs keep all their series, the others only what figures ask for.
func collect(in Input) *collected {
	c := &collected{byRun: map[int][]*figure.Trace{}, errors: map[int]error{}, all: []*figure.Trace{}}
	if in.Samples == nil {
		return c
	}
	var asked []string
	for _, f := range in.Figures {
		if f.Kind == "time" {
			asked = append(asked, f.Y...)
		}
	}
	names := scopeNames(in.Manifest)
	wanted := figure.PickPaths(asked)
	span := in.Manifest.Warmup + in.Manifest.Duration
	for i, r := range in.Runs {
		full := i < maxSeriesRuns
		if !full && len(asked) == 0 {
			break
		}
		pick := func(actor, metric string) []string {
			paths := wanted(actor, metric)
			if p := seriesPath(names, actor, metric); full && !slices.Contains(paths, p) {
				paths = append(paths, p)
			}
			return paths
		}
		traces, _, err := figure.Collect(r, in.Samples, pick, span, figureSlices)
		if err != nil {
			c.errors[r.Index] = err
			continue
		}
		c.byRun[r.Index] = traces
		c.all = append(c.all, traces...)
	}
	return c
}

// scopeNames are the names that metrics may have.
func scopeNames(m *results.Manifest) map[string]bool {
	names := map[string]bool{}
	for _, n := range m.Metrics {
		names[n.Name] = true
	}
	return names
}

// seriesPath names a series: by the scope name that its actor is, or is a role
// or direction of.
func seriesPath(names map[string]bool, actor, metric string) string {
	if !names[actor] {
		if i := strings.LastIndexByte(actor, '.'); i >= 0 && names[actor[:i]] {
			actor = actor[:i]
		}
	}
	return actor + "." + metric
}

// newSeries draws the charts of each run until the budget is spent.
func newSeries(in Input, c *collected) seriesView {
	var v seriesView
	if in.Samples == nil {
		v.Notes = append(v.Notes, "The time series are in runs/*/samples.parquet.")
		return v
	}
	count := slicesPerLine(in, c)
	spent := 0
	for i, r := range in.Runs {
		if i >= maxSeriesRuns || spent > seriesBudget {
			v.Notes = append(v.Notes, fmt.Sprintf("The series of %d more runs are in their samples.parquet.", len(in.Runs)-i))
			break
		}
		run := seriesRun{Title: fmt.Sprintf("Run %d: %s, repetition %d", r.Index, r.Point.ID, r.Repetition)}
		if !r.Usable() {
			run.Title += " (left out)"
		}
		if err := c.errors[r.Index]; err != nil {
			run.Error = err.Error()
		}
		for _, chart := range groupTraces(in.Manifest.Metrics, c.byRun[r.Index]) {
			svg, err := drawSeries(in, r, chart, c.byRun[r.Index], count)
			if err != nil {
				run.Error = err.Error()
				continue
			}
			spent += len(svg)
			run.Charts = append(run.Charts, svg)
		}
		if len(run.Charts) == 0 && run.Error == "" {
			continue
		}
		v.Runs = append(v.Runs, run)
	}
	return v
}

// slicesPerLine spreads the budget over the lines of the runs shown; a slice
// takes about 22 bytes.
func slicesPerLine(in Input, c *collected) int {
	lines := 0
	for _, r := range in.Runs[:min(len(in.Runs), maxSeriesRuns)] {
		for _, chart := range groupTraces(in.Manifest.Metrics, c.byRun[r.Index]) {
			for _, t := range c.byRun[r.Index] {
				if slices.Contains(chart, t.Path) {
					lines++
				}
			}
		}
	}
	if lines == 0 {
		return figureSlices
	}
	return min(max(seriesBudget/(22*lines), 24), 160)
}

func drawSeries(in Input, r *results.Run, paths []string, traces []*figure.Trace, count int) (template.HTML, error) {
	var own []*figure.Trace
	for _, t := range traces {
		if slices.Contains(paths, t.Path) {
			own = append(own, t.Coarser(count))
		}
	}
	f := figure.Figure{Name: fmt.Sprintf("run%d-%s", r.Index, paths[0]), Title: chartTitle(paths), Kind: "time", Y: paths}
	svg, err := figure.Time(f, figure.Timeline{
		Runs: []*results.Run{r}, Traces: own, Defs: in.Manifest.Metrics, All: true, Plain: true,
		Warmup: in.Manifest.Warmup, Duration: in.Manifest.Duration,
	})
	return inline(svg), err
}

func chartTitle(paths []string) string {
	if len(paths) == 1 {
		return paths[0]
	}
	_, last := splitMetric(paths[0])
	for _, p := range paths {
		if _, m := splitMetric(p); m != last {
			name, _ := splitMetric(paths[0])
			return name
		}
	}
	return last
}

// groupTraces puts series of one metric on one chart, the well-known ones
// first; what is left of one name shares a chart where units agree.
func groupTraces(defs []results.NamedMetrics, traces []*figure.Trace) [][]string {
	byMetric := map[string][]string{}
	var order []string
	for _, t := range traces {
		_, last := splitMetric(t.Path)
		if strings.Contains(t.Path, ".flows[*].") || slices.Contains(byMetric[last], t.Path) {
			continue
		}
		if byMetric[last] == nil {
			order = append(order, last)
		}
		byMetric[last] = append(byMetric[last], t.Path)
	}
	slices.SortStableFunc(order, func(a, b string) int { return seriesRank(a) - seriesRank(b) })
	var charts [][]string
	single := map[string]int{} // name and unit: index of the chart
	for _, last := range order {
		paths := byMetric[last]
		if len(paths) == 1 && seriesRank(last) == len(seriesOrder) {
			name, _ := splitMetric(paths[0])
			key := name + " " + figure.UnitOf(defs, paths[0])
			if i, ok := single[key]; ok && len(charts[i]) < maxChartPaths {
				charts[i] = append(charts[i], paths[0])
				continue
			}
			single[key] = len(charts)
		}
		charts = append(charts, paths[:min(len(paths), maxChartPaths)])
	}
	return charts[:min(len(charts), maxSeriesChart)]
}

var seriesOrder = []string{"goodput_bps", "rtt_s", "cwnd_bytes", "cwnd_packets", "backlog_bytes", "delivery_rate_bps", "throughput_bps"}

func seriesRank(metric string) int {
	if i := slices.Index(seriesOrder, metric); i >= 0 {
		return i
	}
	return len(seriesOrder)
}
