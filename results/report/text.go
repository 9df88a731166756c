package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"wirelab/results"
	"wirelab/results/stat"
)

// Text writes the final table for a terminal: verdicts of claims and checks,
// the main metrics per point with median, 95 % interval (or range), mean and
// n, and every doubt about a run. It holds no colour.
func Text(w io.Writer, in Input) error {
	var b strings.Builder
	table := stat.Tabulate(in.Runs)
	metrics := orderedMetrics(table, manifest(in).Metrics)
	shown := headlineMetrics(in, table, metrics)
	writeMedians(&b, table, shown)
	if hidden := len(metrics) - len(shown); hidden > 0 {
		fmt.Fprintf(&b, "  and %d more metrics in the report and summary.csv\n", hidden)
	}
	b.WriteString("\n")
	if len(in.Claims) > 0 || len(sumChecks(in.Runs)) > 0 {
		writeVerdicts(&b, in)
		b.WriteString("\n")
	}
	writeDoubts(&b, in)
	_, err := io.WriteString(w, results.Printable(b.String()))
	return err
}

// manifest returns the input's manifest, an empty one when it has none.
func manifest(in Input) *results.Manifest {
	if in.Manifest != nil {
		return in.Manifest
	}
	return &results.Manifest{}
}

func writeMedians(b *strings.Builder, table *stat.Table, metrics []string) {
	if len(metrics) == 0 {
		b.WriteString("no valid run has a metric to show\n")
		return
	}
	sweep := sweepNames(table.Points)
	rows := [][]string{append(append([]string{"metric"}, sweep...), "median", "95 % interval", "mean", "n")}
	ranges := 0
	for _, m := range metrics {
		label := m
		for _, p := range table.Points {
			c := table.Cell(p.ID, m)
			if c == nil {
				continue
			}
			row := []string{label}
			for _, name := range sweep {
				row = append(row, p.SweepText(name))
			}
			scale := scaleOf(table, c)
			low, high := c.Range()
			median, lowText, highText, mean := scale.Row(c.Median, low, high, c.Mean)
			interval := lowText + " … " + highText
			switch {
			case c.N == 1:
				interval = "–"
				ranges++
			case c.Interval == nil:
				interval = "(" + interval + ")"
				ranges++
			}
			rows = append(rows, append(row, median, interval, mean, strconv.Itoa(c.N)))
			label = ""
		}
	}
	writeTable(b, rows, len(sweep)+1)
	if ranges > 0 {
		fmt.Fprintf(b, "  a 95 %% interval of the median needs at least %d valid repetitions; ( ) is the range of the values\n", stat.MinForInterval)
	}
}

// writeTable aligns columns, the first left ones to the left and the others to
// the right.
func writeTable(b *strings.Builder, rows [][]string, left int) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("  ")
			}
			if i < left {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

func writeVerdicts(b *strings.Builder, in Input) {
	width := len("undecided")
	for _, c := range in.Claims {
		width = max(width, len(c.Verdict))
	}
	for _, c := range in.Claims {
		fmt.Fprintf(b, "claim  %-*s  %s", width, c.Verdict, c.Name)
		if c.Value != nil {
			fmt.Fprintf(b, ": %s", claimValue(c))
		}
		if c.Published != "" {
			fmt.Fprintf(b, " (published: %s)", c.Published)
		}
		if c.Reason != "" {
			fmt.Fprintf(b, " (%s)", c.Reason)
		}
		b.WriteString("\n")
	}
	for _, c := range sumChecks(in.Runs) {
		verdict := "passes"
		if c.Failed > 0 {
			verdict = "fails"
		}
		fmt.Fprintf(b, "check  %-*s  %s: %d of %d runs", width, verdict, c.Name, c.Total-c.Failed, c.Total)
		if c.Message != "" {
			fmt.Fprintf(b, ", %s", c.Message)
		}
		b.WriteString("\n")
	}
}

// claimValue shows a claim's estimate with its interval where there is one.
func claimValue(c results.ClaimResult) string {
	if c.Value == nil {
		return ""
	}
	if c.Low == nil || c.High == nil {
		return results.FormatValue(*c.Value, "1")
	}
	t := results.ScaleFor("1", *c.Value).Alike(*c.Value, *c.Low, *c.High)
	return fmt.Sprintf("%s [%s, %s]", t[0], t[1], t[2])
}

// checkSum is a check over the valid runs.
type checkSum struct {
	Name          string
	Total, Failed int
	Message       string // of the first run that failed, with its number
	Results       []results.CheckResult
}

// sumChecks groups the check results of valid runs, in the order of the file.
func sumChecks(runs []*results.Run) []checkSum {
	var sums []checkSum
	for _, r := range runs {
		if !r.Usable() {
			continue
		}
		for _, c := range r.Checks {
			i := slices.IndexFunc(sums, func(s checkSum) bool { return s.Name == c.Name })
			if i < 0 {
				i = len(sums)
				sums = append(sums, checkSum{Name: c.Name})
			}
			s := &sums[i]
			s.Total++
			s.Results = append(s.Results, c)
			if c.Pass && c.Error == "" {
				continue
			}
			s.Failed++
			if s.Message == "" {
				s.Message = fmt.Sprintf("run %d: %s", r.Index, checkMessage(c))
			}
		}
	}
	return sums
}

// checkMessage is what a failed check says.
func checkMessage(c results.CheckResult) string {
	switch {
	case c.Error != "":
		return c.Error
	case c.Message != "":
		return c.Message
	}
	return "the condition is false"
}

// note is a doubt with the runs that have it.
type note struct {
	text  string // of the worst run, by its numbers
	worst int    // that run
	runs  []int
	alike bool // other runs have other numbers in it
}

var numbers = regexp.MustCompile(`[0-9]+([.,][0-9]+)?`)

// groupNotes collects the notes of all runs, in the order met. Notes that
// differ in their numbers only count as one.
func groupNotes(runs []*results.Run) []note {
	var notes []note
	index := map[string]int{}
	for _, r := range runs {
		for _, text := range r.Notes {
			shape := numbers.ReplaceAllString(text, "#")
			i, ok := index[shape]
			if !ok {
				i = len(notes)
				index[shape] = i
				notes = append(notes, note{text: text, worst: r.Index})
			}
			n := &notes[i]
			n.runs = append(n.runs, r.Index)
			n.alike = n.alike || text != n.text
			if weight(text) > weight(n.text) {
				n.text, n.worst = text, r.Index
			}
		}
	}
	return notes
}

// weight is the sum of the numbers in a note: of notes that differ in their
// numbers only, the worst has the largest.
func weight(text string) float64 {
	sum := 0.0
	for _, n := range numbers.FindAllString(text, -1) {
		// The expression matches nothing that is no number.
		v, _ := strconv.ParseFloat(strings.Replace(n, ",", ".", 1), 64)
		sum += v
	}
	return sum
}

// words is the note's text, saying where its numbers are of one run only.
func (n note) words() string {
	if n.alike {
		return fmt.Sprintf("%s (run %d, the worst)", n.text, n.worst)
	}
	return n.text
}

// writeDoubts lists invalid and failed runs and the notes of all.
func writeDoubts(b *strings.Builder, in Input) {
	for _, n := range groupNotes(in.Runs) {
		fmt.Fprintf(b, "note      %s: %s\n", runList(n.runs), n.words())
	}
	for _, r := range in.Runs {
		if !r.Usable() {
			fmt.Fprintf(b, "left out  run %d (%s, repetition %d): %s\n", r.Index, r.Point.ID, r.Repetition, whyLeftOut(r))
		}
	}
	b.WriteString(runsLine(count(in.Manifest, in.Runs)) + "\n")
}

// whyLeftOut says why a run's values are not used.
func whyLeftOut(r *results.Run) string {
	switch {
	case r.Error != "":
		return string(r.Status) + ": " + r.Error
	case len(r.Reasons) > 0:
		return "invalid: " + strings.Join(r.Reasons, "; ")
	case !r.HasMetrics():
		return string(r.Status)
	}
	return "invalid"
}

// runList names runs briefly: "run 3", "runs 0-4, 7".
func runList(indices []int) string {
	indices = slices.Compact(slices.Sorted(slices.Values(indices)))
	if len(indices) == 1 {
		return "run " + strconv.Itoa(indices[0])
	}
	var parts []string
	for i := 0; i < len(indices); {
		j := i
		for j+1 < len(indices) && indices[j+1] == indices[j]+1 {
			j++
		}
		part := strconv.Itoa(indices[i])
		if j > i+1 {
			part += "-" + strconv.Itoa(indices[j])
		} else if j == i+1 {
			part += ", " + strconv.Itoa(indices[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return "runs " + strings.Join(parts, ", ")
}
