package figure_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirelab/results"
	"wirelab/results/figure"
	"wirelab/results/resultstest"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a drawing with testdata/NAME.svg and checks that it is
// well-formed XML without a number that is not finite.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(got))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s is no XML: %v\n%s", name, err, got)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(string(got), bad) {
			t.Errorf("%s contains %s", name, bad)
		}
	}
	path := filepath.Join("testdata", name+".svg")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run go test -update to write it", err)
	}
	if !bytes.Equal(want, got) {
		out := filepath.Join(t.ArtifactDir(), name+".svg")
		_ = os.WriteFile(out, got, 0o644)
		t.Errorf("%s differs from the golden file (look at it, then go test -update); got:\n%s", path, firstDifference(want, got))
	}
}

func firstDifference(want, got []byte) string {
	w, g := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\n-%s\n+%s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

var goodput = figure.Figure{Name: "goodput", Title: "Goodput of both flows against the buffer", Kind: "line", X: "buffer", Y: []string{"cubic.goodput_bps", "reno.goodput_bps"}}

func TestLine(t *testing.T) {
	many := []float64{0.25, 0.5, 1, 2, 4}
	tests := []struct {
		name string
		fig  func(f *figure.Figure)
		opt  resultstest.Options
	}{
		{"line-quickstart", nil, resultstest.Options{}},
		{"line-interval", nil, resultstest.Options{Buffers: many, Repetitions: 8}},
		{"line-log", func(f *figure.Figure) { f.LogX, f.LogY = true, true }, resultstest.Options{Buffers: many, Repetitions: 6, Invalid: []int{3}}},
		{"line-single", nil, resultstest.Options{Buffers: []float64{1}, Repetitions: 1}},
		{"line-two-units", func(f *figure.Figure) { f.Y = append(f.Y, "cubic.rtt_p50_s", "cubic.rtt_p99_s") }, resultstest.Options{Buffers: many, Repetitions: 6}},
		{"line-empty", nil, resultstest.Options{Invalid: []int{0, 1, 2}, Failed: []int{3, 4, 5}}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			fig := goodput
			if c.fig != nil {
				c.fig(&fig)
			}
			m, runs := resultstest.Experiment(c.opt)
			got, err := figure.Line(fig, runs, m.Metrics)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, c.name, got)
		})
	}
}

// categories makes runs over a text variable and a second, numeric one.
func categories(ccas []string, delays []string, repetitions int) []*results.Run {
	var runs []*results.Run
	for i, cca := range ccas {
		for j, d := range delays {
			for rep := range repetitions {
				runs = append(runs, &results.Run{
					Index: len(runs), Repetition: rep, Status: results.StatusOK, Valid: true,
					Point:  results.Point{ID: "cca=" + cca + ",rtt=" + d, Sweep: []results.SweepValue{{Name: "cca", Text: cca}, {Name: "rtt", Text: d}}},
					Values: []results.Value{{Metric: "w.goodput_bps", Value: 1e6 * float64(40+7*i-5*j+rep%3), Unit: "bit/s"}},
				})
			}
		}
	}
	return runs
}

func TestLineOverTextsAndQuantities(t *testing.T) {
	fig := figure.Figure{Name: "cca", Title: "Goodput by congestion control", X: "cca", Y: []string{"w.goodput_bps"}, By: "rtt"}
	got, err := figure.Line(fig, categories([]string{"cubic", "reno", "bbr"}, []string{"10ms", "80ms"}, 7), nil)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "line-categories", got)

	fig = figure.Figure{Name: "rtt", Title: "Goodput by delay", X: "rtt", Y: []string{"w.goodput_bps"}, By: "cca"}
	got, err = figure.Line(fig, categories([]string{"a", "b", "c", "d", "e", "f", "g", "h"}, []string{"10ms", "20ms", "40ms", "80ms"}, 6), nil)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "line-legend", got)
	if s := string(got); !strings.Contains(s, "rtt (ms)") || !strings.Contains(s, "goodput (Mbit/s)") {
		t.Error("an axis lacks its unit")
	}
}

func TestLineRefuses(t *testing.T) {
	m, runs := resultstest.Experiment(resultstest.Options{})
	for want, fig := range map[string]figure.Figure{
		`"size"`:    {Name: "f", X: "size", Y: []string{"cubic.goodput_bps"}},
		"no metric": {Name: "f", X: "buffer"},
	} {
		if _, err := figure.Line(fig, runs, m.Metrics); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Line(%+v) = %v, want an error with %s", fig, err, want)
		}
	}
}

func TestTime(t *testing.T) {
	delay := figure.Figure{Name: "delay", Title: "Smoothed RTT over time", Kind: "time", Y: []string{"cubic.rtt_s", "reno.rtt_s"}}
	mixed := delay
	mixed.Y = []string{"cubic.rtt_s", "net.bottleneck.backlog_bytes"}
	tests := []struct {
		name string
		fig  figure.Figure
		opt  resultstest.Options
	}{
		{"time-quickstart", delay, resultstest.Options{}},
		{"time-flows", delay, resultstest.Options{Buffers: []float64{1}, Repetitions: 1, Flows: 3}},
		{"time-two-units", mixed, resultstest.Options{Buffers: []float64{0.5, 1, 2}, Repetitions: 1}},
		{"time-empty", figure.Figure{Name: "none", Y: []string{"cubic.owd_s"}}, resultstest.Options{}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			m, runs := resultstest.Experiment(c.opt)
			got, err := figure.Time(c.fig, figure.Timeline{
				Runs: runs, Samples: resultstest.Samples(c.opt), Defs: m.Metrics, Warmup: m.Warmup, Duration: m.Duration, Slices: 60,
			})
			if err != nil {
				t.Fatal(err)
			}
			golden(t, c.name, got)
		})
	}
}

func diagram(links ...string) *results.Diagram {
	d := &results.Diagram{}
	seen := map[string]bool{}
	for _, l := range links {
		ends := strings.Split(strings.TrimSuffix(l, "*"), "-")
		for _, n := range ends {
			if !seen[n] {
				seen[n] = true
				kind := "host"
				if n[0] == 'r' {
					kind = "router"
				} else if n[0] == 's' {
					kind = "bridge"
				}
				d.Nodes = append(d.Nodes, results.DiagramNode{Name: n, Kind: kind})
			}
		}
		rec := results.LinkRecord{Name: "net." + ends[0] + ends[1], Between: [2]string{ends[0], ends[1]}, Backend: "none"}
		if strings.HasSuffix(l, "*") {
			rec.Backend = "software"
			rec.Forward.Text, rec.Reverse.Text = "10 Mbit/s, 5 ms", "1 Mbit/s, 5 ms"
		}
		d.Links = append(d.Links, rec)
	}
	return d
}

func TestTopology(t *testing.T) {
	m, _ := resultstest.Experiment(resultstest.Options{})
	golden(t, "topology-dumbbell", figure.Topology(m.Topology))
	golden(t, "topology-star", figure.Topology(diagram("s-a*", "s-b", "s-c", "s-d*", "s-e")))
	golden(t, "topology-lot", figure.Topology(diagram("a-r1", "b-r1", "r1-r2*", "c-r2", "r2-r3*", "d-r3", "e-r3")))
	golden(t, "topology-ring", figure.Topology(diagram("r1-r2*", "r2-r3", "r3-r4*", "r4-r5", "r5-r1", "r1-r3*", "r1-r2")))
	var chain []string
	for i := range 19 {
		chain = append(chain, fmt.Sprintf("n%d-n%d*", i, i+1))
	}
	golden(t, "topology-chain", figure.Topology(diagram(chain...)))
	golden(t, "topology-tree", figure.Topology(diagram("r0-r1*", "r0-r2*", "r0-r3", "r1-a1", "r1-a2", "r1-a3", "r2-b1", "r2-b2", "r3-c1", "r3-r4*", "r4-d1", "r4-d2")))
	var star []string
	for i := range 18 {
		star = append(star, fmt.Sprintf("s-n%d", i)+map[bool]string{true: "*"}[i%6 == 0])
	}
	golden(t, "topology-bigstar", figure.Topology(diagram(star...)))
	golden(t, "topology-none", figure.Topology(nil))
	var big []string
	for i := range 99 {
		big = append(big, fmt.Sprintf("n%d-n%d*", i, i+1))
	}
	golden(t, "topology-big", figure.Topology(diagram(big...)))
}

func TestCDF(t *testing.T) {
	_, runs := resultstest.Experiment(resultstest.Options{Repetitions: 1})
	var lines []figure.Distribution
	for _, r := range runs {
		lines = append(lines, figure.Distribution{Label: r.Point.Label(), Hist: r.Records[0].Hist})
	}
	fig := figure.Figure{Name: "rtt", Title: "RTT of the CUBIC flow", X: "rtt_s"}
	golden(t, "cdf", figure.CDF(fig, "s", lines))
	golden(t, "cdf-empty", figure.CDF(fig, "s", []figure.Distribution{{Label: "none"}}))
}

func TestInlineLeavesOneStyleForThePage(t *testing.T) {
	m, runs := resultstest.Experiment(resultstest.Options{})
	svg, err := figure.Line(goodput, runs, m.Metrics)
	if err != nil {
		t.Fatal(err)
	}
	inline := figure.Inline(svg)
	if bytes.Contains(inline, []byte("<style>")) || !bytes.Contains(svg, []byte(figure.Style())) {
		t.Error("the style must be in the file and not in the inline form")
	}
	if !bytes.HasSuffix(inline, []byte("</svg>\n")) || !bytes.Contains(inline, []byte("cubic")) {
		t.Error("the inline form lost more than its style")
	}
}
