package report_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"wirelab/results"
	"wirelab/results/figure"
	"wirelab/results/report"
	"wirelab/results/resultstest"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
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
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test -update if this is right):\n%s", path, diff)
	}
}

func number(v float64) *float64 { return &v }

var claims = []results.ClaimResult{
	{Name: "reno is not starved at one BDP", Verdict: results.Holds, Value: number(0.7421), Low: number(0.701), High: number(0.779), Published: "0.5", Source: "Ha et al. 2008, figure 5", N: 6},
	{Name: "half a BDP is enough", Verdict: results.Fails, Value: number(0.93), Low: number(0.921), High: number(0.938), N: 6},
	{Name: "cubic needs more retransmissions", Verdict: results.Undecided, Value: number(1.04), N: 3, Reason: "3 valid repetition(s) of buffer=0.5: a verdict needs at least 6"},
	{Name: "four cores carry 10 Gbit/s", Verdict: results.NotTestable, Reason: "host.cores >= 4 is false"},
}

func input(opt resultstest.Options) report.Input {
	m, runs := resultstest.Experiment(opt)
	return report.Input{
		Manifest: m, Runs: runs, Claims: claims, Experiment: []byte(resultstest.Source), Samples: resultstest.Samples(opt),
		Dir: "wirelab-runs/quickstart/20260304-050607-abc", Command: "quickstart",
		Figures: []figure.Figure{
			{Name: "goodput", Title: "Goodput of both flows against the buffer", Kind: "line", X: "buffer", Y: []string{"cubic.goodput_bps", "reno.goodput_bps"}},
			{Name: "delay", Title: "Smoothed RTT over time", Kind: "time", Y: []string{"cubic.rtt_s", "reno.rtt_s"}},
		},
	}
}

func TestText(t *testing.T) {
	for name, opt := range map[string]resultstest.Options{
		"quickstart.txt": {Invalid: []int{2}, Failed: []int{4}},
		"six.txt":        {Repetitions: 6},
		"none.txt":       {Failed: []int{0, 1, 2, 3, 4, 5}},
	} {
		var b bytes.Buffer
		if err := report.Text(&b, input(opt)); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

func TestMarkdownAndJUnit(t *testing.T) {
	out := render(t, input(resultstest.Options{Invalid: []int{2}, Failed: []int{4}}))
	golden(t, "summary.md", out.Markdown)
	golden(t, "checks.xml", out.JUnit)
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
		Suites   []struct {
			Name    string     `xml:"name,attr"`
			Skipped int        `xml:"skipped,attr"`
			Cases   []struct{} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(out.JUnit, &suites); err != nil {
		t.Fatal(err)
	}
	cases, skipped := 0, 0
	for _, s := range suites.Suites {
		cases += len(s.Cases)
		skipped += s.Skipped
	}
	// 6 runs, 2 checks of 4 valid runs, 4 claims.
	if suites.Tests != 18 || cases != 18 {
		t.Errorf("tests = %d, cases = %d; want 18", suites.Tests, cases)
	}
	// The failed run; the invalid run and two claims without a verdict.
	if suites.Errors != 1 || skipped != 3 || suites.Failures < 1 {
		t.Errorf("errors %d, skipped %d, failures %d", suites.Errors, skipped, suites.Failures)
	}
	smoke := input(resultstest.Options{})
	smoke.Manifest.Smoke = true
	if got := string(render(t, smoke).JUnit); strings.Contains(got, `type="check"`) {
		t.Error("a smoke run fails a check")
	}
}

func render(t *testing.T, in report.Input) *report.Output {
	t.Helper()
	out, err := report.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var sections = []string{"figures", "medians", "topology", "validity", "series", "definitions", "environment", "experiment", "rerun"}

// TestPage checks what must hold for the page of any experiment, over those
// that are easily got wrong.
func TestPage(t *testing.T) {
	tests := map[string]func() report.Input{
		"quickstart": func() report.Input { return input(resultstest.Options{Invalid: []int{2}, Failed: []int{4}}) },
		"intervals": func() report.Input {
			return input(resultstest.Options{Repetitions: 6, Buffers: []float64{0.25, 0.5, 1, 2, 4}})
		},
		"one run": func() report.Input { return input(resultstest.Options{Repetitions: 1, Buffers: []float64{1}}) },
		"no valid run": func() report.Input {
			return input(resultstest.Options{Failed: []int{0, 1, 2}, Invalid: []int{3, 4, 5}})
		},
		"no counters":   func() report.Input { return input(resultstest.Options{Bare: true}) },
		"no runs":       func() report.Input { in := input(resultstest.Options{}); in.Runs = nil; return in },
		"no samples":    func() report.Input { in := input(resultstest.Options{}); in.Samples = nil; return in },
		"bare manifest": func() report.Input { in := input(resultstest.Options{}); in.Manifest = &results.Manifest{}; return in },
		"no figures":    func() report.Input { in := input(resultstest.Options{}); in.Figures = nil; return in },
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			out := render(t, make())
			page := string(out.HTML)
			at := 0
			for _, s := range sections {
				if s == "figures" && !strings.Contains(page, `id="figures"`) {
					continue
				}
				i := strings.Index(page, `<section id="`+s+`"`)
				if i < at {
					t.Errorf("section %s is missing or out of order", s)
				}
				at = i
			}
			checkPage(t, page)
			if again := render(t, make()); !bytes.Equal(out.HTML, again.HTML) {
				t.Error("equal input gives different pages")
			}
		})
	}
}

// checkPage checks that a page is well-formed, needs nothing from elsewhere,
// and that its links lead somewhere.
func checkPage(t *testing.T, page string) {
	t.Helper()
	for _, bad := range []string{"<script", "http-equiv", "<link", "@import", "url(", "NaN", "+Inf", "-Inf", "%!", "ZgotmplZ", "<nil>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page contains %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`https?://[^"'< ]+`).FindAllString(page, -1) {
		if m != "http://www.w3.org/2000/svg" {
			t.Errorf("the page refers to %s", m)
		}
	}
	ids := map[string]int{}
	for _, m := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]]++; ids[m[1]] == 2 {
			t.Errorf("two elements have the id %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(` href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] == 0 {
			t.Errorf("a link leads to #%s, which is not there", m[1])
		}
	}
	var open []string
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta", "br"}, xml.HTMLEntity
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		switch e := token.(type) {
		case xml.StartElement:
			open = append(open, e.Name.Local)
		case xml.EndElement:
			if len(open) == 0 || open[len(open)-1] != e.Name.Local {
				t.Fatalf("</%s> closes %v", e.Name.Local, open)
			}
			open = open[:len(open)-1]
		}
	}
	if len(open) != 0 {
		t.Errorf("never closed: %v", open)
	}
}

func TestPageContent(t *testing.T) {
	page := string(render(t, input(resultstest.Options{Invalid: []int{2}, Failed: []int{4}})).HTML)
	for _, want := range []string{
		"Does CUBIC leave Reno", "4 of 6 runs valid, 1 invalid, 1 failed", // lead
		"0.7421 [0.7010, 0.7790]", "Ha et al. 2008", "not testable here", // claims
		"host contended: steal 7.2", "address already in use", // runs left out
		"generator-bound", "n/s (not supported on this host)", // doubts, events
		"40.07 ms", "within tolerance", // calibration
		"RFC 5166, section 2.1", "from 1 s to 5 s", // definitions
		"AMD EPYC 7713", "wirelab run quickstart", "# in BDP", // environment, text
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestHostileText feeds markup through every text that comes from outside.
func TestHostileText(t *testing.T) {
	const evil = "<img src=x onerror=\"alert(1)\">&'\x00\x1b[31m\xff]]>"
	in := input(resultstest.Options{})
	in.Manifest.Title, in.Manifest.Host.CPUModel = evil, evil
	in.Claims[0].Reason = evil
	defer func() { in.Claims[0].Reason = "" }()
	in.Figures[0].Title = evil
	in.Experiment = []byte(evil)
	in.Runs[0].Notes = []string{evil}
	in.Figures[0].Name = strings.Repeat("ü/", 200)
	in.Runs[1].Point.ID = evil
	in.Runs[1].Point.Sweep[0].Text = evil
	in.Manifest.Topology.Nodes[0].Name = evil
	out := render(t, in)
	if bytes.Contains(out.HTML, []byte("<img")) || bytes.Contains(out.Markdown, []byte("<img")) {
		t.Error("markup from outside reaches the page")
	}
	var any struct{}
	if err := xml.Unmarshal(out.JUnit, &any); err != nil {
		t.Errorf("checks.xml: %v", err)
	}
	var text bytes.Buffer
	if err := report.Text(&text, in); err != nil || bytes.ContainsAny(text.Bytes(), "\x00\x1b") {
		t.Errorf("control characters reach the terminal: %v", err)
	}
	for name, svg := range out.Figures {
		if len(name) > 150 || strings.Contains(name, "/") || !utf8.ValidString(name) {
			t.Errorf("no file name: %q", name)
		}
		if err := xml.Unmarshal(svg, &any); err != nil || bytes.Contains(svg, []byte("<img")) {
			t.Errorf("figure %s: %v", name, err)
		}
	}
}

func TestManyRunsStaySmall(t *testing.T) {
	opt := resultstest.Options{Repetitions: 12, Buffers: []float64{0.25, 0.5, 1, 2}, Flows: 8}
	out := render(t, input(opt))
	if n := len(out.HTML); n > 3<<20 {
		t.Errorf("the page of 48 runs has %d bytes, want at most 3 MiB", n)
	}
	if !bytes.Contains(out.HTML, []byte("more runs are in their samples.parquet")) {
		t.Error("the page does not say that series were left out")
	}
}

func TestFiles(t *testing.T) {
	out := render(t, input(resultstest.Options{}))
	var names []string
	for name, content := range out.Files() {
		names = append(names, name)
		if len(content) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	slices.Sort(names)
	want := []string{"checks.xml", "figures/delay.svg", "figures/goodput.svg", "figures/topology.svg", "report.html", "summary.md"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := report.Render(report.Input{}); err == nil {
		t.Error("Render without a manifest succeeds")
	}
}
