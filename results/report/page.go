package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"time"

	"wirelab/results"
	"wirelab/results/figure"
)

//go:embed page.html
var pageText string

//go:embed page.css
var pageStyle string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template shows, already formatted.
type page struct {
	Title, Experiment, Version string
	Lead                       []string // facts under the title
	Banners                    []string // what limits the whole report
	Style                      template.CSS

	Claims  []claimView
	Checks  []checkView
	Figures []figureView

	Short, All    *medianTable // All is nil when Short has everything
	Distributions []distributionView

	Topology template.HTML
	HasNet   bool
	Plan     []string // notes of the plan

	Validity    validity
	Series      seriesView
	Definitions []definition
	Window      string

	Environment []fact
	Sysctls     []fact
	Modules     []fact
	Source      string
	Rerun       []command
}

// fact is a name and a value; empty values are not shown.
type fact struct{ Name, Value string }

// command is a line to type and what it does.
type command struct{ Line, Does string }

type claimView struct {
	Name, Verdict, Symbol, Class, Measured, Published, Source, Reason string
	N                                                                 int
}

type checkView struct {
	Name, Symbol, Class, Count, Message string
}

type figureView struct {
	SVG   template.HTML
	File  string
	Error string
}

// renderPage fills the template.
func renderPage(d *data) ([]byte, error) {
	m := d.Manifest
	p := page{
		Title: titleOf(m), Experiment: m.Experiment, Version: m.Version,
		Lead: lead(d), Banners: banners(d), Style: template.CSS(pageStyle + figure.Style()),
		Claims: claimViews(d.Claims), Checks: checkViews(d), Figures: figureViews(d.figures),
		Topology: inline(d.topology), HasNet: m.Topology != nil, Plan: m.Notes,
		Validity: newValidity(d), Definitions: definitions(d), Window: window(m),
		Environment: environment(m), Sysctls: sortedFacts(m.Host.Sysctls), Modules: sortedFacts(m.Modules),
		Source: string(d.Experiment), Rerun: rerun(d),
	}
	p.Short, p.All = medianTables(d)
	p.Distributions = distributions(d)
	p.Series = d.series
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, p); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// inline marks a drawing of ours as safe: all text in it is escaped there.
func inline(svg []byte) template.HTML { return template.HTML(figure.Inline(svg)) }

func lead(d *data) []string {
	m := d.Manifest
	facts := []string{m.Experiment, runsLine(d.counts)}
	if m.Duration > 0 {
		facts = append(facts, fmt.Sprintf("%s per run after %s of warm-up", seconds(m.Duration), seconds(m.Warmup)))
	}
	if m.Substrate != "" {
		facts = append(facts, "substrate "+m.Substrate)
	}
	if !m.Started.IsZero() {
		facts = append(facts, m.Started.UTC().Format("2 January 2006, 15:04 UTC"))
		if m.Finished.After(m.Started) {
			facts = append(facts, "took "+m.Finished.Sub(m.Started).Round(time.Second).String())
		}
	}
	return facts
}

// seconds writes a duration given in seconds as people write it.
func seconds(s float64) string { return results.FormatValue(s, "s") }

func banners(d *data) []string {
	m := d.Manifest
	var b []string
	if m.Smoke {
		b = append(b, "Smoke size: this run shows that everything works. Checks are reported and decide nothing; claims decide only where the experiment says so.")
	}
	if m.Interrupted {
		b = append(b, "Interrupted: the runs that were finished are shown.")
	}
	if d.counts.Valid == 0 {
		b = append(b, "No run is valid, so there are no numbers to show. The section on validity says why.")
	}
	if d.counts.Missing > 0 {
		b = append(b, fmt.Sprintf("%d of %d runs have not been made.", d.counts.Missing, d.counts.Total))
	}
	return b
}

func claimViews(claims []results.ClaimResult) []claimView {
	var out []claimView
	classes := map[results.Verdict]string{results.Holds: "good", results.Fails: "bad", results.Undecided: "open", results.NotTestable: "none"}
	for _, c := range claims {
		out = append(out, claimView{
			Name: c.Name, Verdict: string(c.Verdict), Symbol: symbol(c.Verdict), Class: classes[c.Verdict],
			Measured: claimValue(c), Published: c.Published, Source: c.Source, Reason: c.Reason, N: c.N,
		})
	}
	return out
}

func checkViews(d *data) []checkView {
	var out []checkView
	for _, c := range d.checks {
		v := checkView{Name: c.Name, Symbol: checkSymbol(c), Class: "good", Count: fmt.Sprintf("%d of %d runs", c.Total-c.Failed, c.Total), Message: c.Message}
		if c.Failed > 0 {
			v.Class = "bad"
			if d.Manifest.Smoke {
				v.Class = "open"
			}
		}
		out = append(out, v)
	}
	return out
}

func figureViews(figures []drawn) []figureView {
	var out []figureView
	for _, f := range figures {
		v := figureView{File: "figures/" + f.file + ".svg"}
		if f.err != nil {
			v.Error = "The figure " + f.Name + " could not be drawn: " + f.err.Error() + "."
		} else {
			v.SVG = inline(f.svg)
		}
		out = append(out, v)
	}
	return out
}

// window says what part of a run its metrics cover.
func window(m *results.Manifest) string {
	if m.Duration <= 0 {
		return "the whole load"
	}
	return fmt.Sprintf("the last %s of the load, from %s to %s after its start", seconds(m.Duration), seconds(m.Warmup), seconds(m.Warmup+m.Duration))
}

// rerun lists the commands that repeat or continue the experiment.
func rerun(d *data) []command {
	m := d.Manifest
	what := d.Command
	if what == "" {
		what = "experiment.hcl"
	}
	flags := ""
	for _, f := range m.Flags {
		flags += " " + shellWord(f)
	}
	out := []command{{"wirelab run " + shellWord(what) + flags, "makes all runs again, in a new directory"}}
	if d.Dir != "" {
		out = append(out,
			command{"wirelab run " + shellWord(d.Dir+"/experiment.hcl") + flags, "runs exactly the text below"},
			command{"wirelab run " + shellWord(d.Dir), "makes the runs that are missing or failed in this directory"},
			command{"wirelab report " + shellWord(d.Dir), "judges and draws anew from the stored runs"})
	}
	return out
}

// shellWord quotes a word where a shell needs it.
func shellWord(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,@+%", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
