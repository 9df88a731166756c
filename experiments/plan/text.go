package plan

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"wirelab/experiments"
)

// Text limits: what is longer is cut, and the JSON form has all of it.
const (
	maxNodes  = 20
	maxLinks  = 20
	maxPoints = 40
	maxRuns   = 40
)

// WriteText writes the plan for people.
func (p *Plan) WriteText(w io.Writer) error {
	t := &textWriter{plan: p}
	t.head()
	t.points()
	if first := firstSetup(p.Experiment); first != nil {
		t.setup(first, p.Experiment.Points[0].ID)
		t.differences(first)
	}
	t.judges()
	t.runs()
	t.notes()
	_, err := io.WriteString(w, t.String())
	return err
}

func firstSetup(x *experiments.Experiment) *experiments.Setup {
	if len(x.Points) == 0 || len(x.Points[0].Repetitions) == 0 {
		return nil
	}
	return &x.Points[0].Repetitions[0]
}

type textWriter struct {
	strings.Builder
	plan *Plan
}

func (t *textWriter) line(format string, args ...any) {
	fmt.Fprintf(t, format+"\n", args...)
}

// table writes rows of cells in columns, moved right by two.
func (t *textWriter) table(rows [][]string) {
	tw := tabwriter.NewWriter(t, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		// Writing to a strings.Builder does not fail.
		_, _ = fmt.Fprintf(tw, "  %s\n", strings.TrimRight(strings.Join(r, "\t"), "\t "))
	}
	_ = tw.Flush()
}

func (t *textWriter) head() {
	x := t.plan.Experiment
	t.line("%s: %s", x.Name, x.Title)
	size := ""
	if x.Smoke {
		size = ", smoke size"
	}
	t.line("substrate %s, emulation %s, seed %d%s", x.Substrate, x.Emulation, x.Seed, size)
	t.line("%s x %s = %s, each %s after %s of warm-up; about %s",
		plural(len(x.Points), "point"), plural(x.Repetitions, "repetition"), plural(len(t.plan.Runs), "run"), x.Duration, x.Warmup, round(t.plan.Estimate()))
	t.line("plan %s", t.plan.Hash)
	if len(x.Variables) > 0 {
		t.line("\nVariables")
		var rows [][]string
		for _, name := range sortedKeys(x.Variables) {
			rows = append(rows, []string{name, x.Variables[name]})
		}
		t.table(rows)
	}
}

func (t *textWriter) points() {
	x := t.plan.Experiment
	if len(x.SweepNames) == 0 {
		return
	}
	t.line("\nPoints")
	rows := make([][]string, 0, len(x.Points))
	for i, p := range x.Points {
		if i == maxPoints {
			rows = append(rows, []string{fmt.Sprintf("and %d more", len(x.Points)-i)})
			break
		}
		row := []string{p.ID}
		if d := p.Repetitions[0].Duration; d != x.Duration || p.Repetitions[0].Warmup != x.Warmup {
			row = append(row, fmt.Sprintf("%s after %s", d, p.Repetitions[0].Warmup))
		}
		rows = append(rows, row)
	}
	t.table(rows)
}

// setup writes the first point in full.
func (t *textWriter) setup(s *experiments.Setup, id string) {
	of := ""
	if len(t.plan.Experiment.Points) > 1 {
		of = " of point " + id
	}
	if s.Topology != nil {
		t.line("\nTopology %s%s", s.Topology.Name, of)
		t.table(nodeRows(s.Topology))
		for _, l := range linkLines(s.Topology) {
			t.line("  %s", l)
		}
	}
	if len(s.Workloads) > 0 {
		t.line("\nWorkloads%s", of)
		t.table(workloadRows(s))
	}
	if len(s.Instruments) > 0 {
		var names []string
		for _, i := range s.Instruments {
			names = append(names, fmt.Sprintf("%s (%s)", i.Name, i.Kind))
		}
		t.line("\nInstruments%s\n  %s", of, strings.Join(names, ", "))
	}
}

// differences writes what the other points have that the first has not.
func (t *textWriter) differences(first *experiments.Setup) {
	known := map[string]bool{}
	for _, l := range setupLines(first) {
		known[l] = true
	}
	points := t.plan.Experiment.Points
	for i := 1; i < len(points) && i < maxPoints; i++ {
		var other []string
		for _, l := range setupLines(&points[i].Repetitions[0]) {
			if !known[l] {
				other = append(other, l)
			}
		}
		if len(other) == 0 {
			continue
		}
		t.line("\nPoint %s differs in", points[i].ID)
		for _, l := range other[:min(len(other), maxLinks)] {
			t.line("  %s", l)
		}
	}
}

// setupLines are links and workloads, one line each.
func setupLines(s *experiments.Setup) []string {
	var out []string
	if s.Topology != nil {
		group := ""
		for _, l := range linkLines(s.Topology) {
			if !strings.HasPrefix(l, " ") {
				var what string
				group, what, _ = strings.Cut(l, ": ")
				out = append(out, group+": "+what)
				continue
			}
			out = append(out, group+" "+strings.TrimSpace(l))
		}
	}
	for _, w := range workloadRows(s) {
		out = append(out, "workload "+strings.Join(w, " "))
	}
	return out
}

func workloadRows(s *experiments.Setup) [][]string {
	var rows [][]string
	for _, w := range s.Workloads {
		c := w.Config.Common()
		where := c.On
		if c.From != "" || c.To != "" {
			where = c.From + " -> " + c.To
		}
		if rtt, ok := pathRTT(s.Topology, c.From, c.To); ok {
			where += ", base RTT " + milliseconds(rtt)
		}
		row := []string{w.Name, w.Kind, where}
		switch {
		case c.After != "":
			row = append(row, "after "+c.After)
		case c.Start != 0:
			row = append(row, "from "+c.Start.String())
		}
		rows = append(rows, append(row, given(w.Config)))
	}
	return rows
}

func (t *textWriter) judges() {
	x := t.plan.Experiment
	var rows [][]string
	for _, c := range x.Checks {
		rows = append(rows, []string{"check", c.Name})
	}
	for _, c := range x.Claims {
		row := []string{"claim", c.Name}
		if c.NotTestable != "" {
			row = append(row, "not testable here: "+c.NotTestable)
		}
		rows = append(rows, row)
	}
	for _, f := range x.Figures {
		rows = append(rows, []string{"figure", f.Name, f.Kind + " of " + strings.Join(f.Y, ", ")})
	}
	if len(rows) > 0 {
		t.line("\nJudged and drawn")
		t.table(rows)
	}
}

func (t *textWriter) runs() {
	t.line("\nRuns, in this order")
	rows := make([][]string, 0, len(t.plan.Runs))
	for i, r := range t.plan.Runs {
		if i == maxRuns {
			rows = append(rows, []string{fmt.Sprintf("and %d more", len(t.plan.Runs)-i)})
			break
		}
		rows = append(rows, []string{fmt.Sprintf("%04d", r.Index), t.plan.Experiment.Points[r.Point].ID,
			fmt.Sprintf("repetition %d", r.Repetition), r.Hash[:12]})
	}
	t.table(rows)
}

func (t *textWriter) notes() {
	if len(t.plan.Experiment.Notes) == 0 {
		return
	}
	t.line("\nNotes")
	for _, n := range t.plan.Experiment.Notes {
		t.line("  %s", n)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// round keeps an estimate as vague as it is.
func round(d time.Duration) time.Duration {
	if d > 10*time.Minute {
		return d.Round(time.Minute)
	}
	return d.Round(time.Second)
}
