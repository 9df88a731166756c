package report

import (
	"fmt"
	"strconv"
	"strings"

	"wirelab/results"
	"wirelab/results/stat"
)

// maxMarkdownRows keeps a summary within what CI pages show.
const maxMarkdownRows = 120

// renderMarkdown writes the summary for the page of a CI job.
func renderMarkdown(d *data) []byte {
	var b strings.Builder
	m := d.Manifest
	fmt.Fprintf(&b, "## %s\n\n", markdownText(titleOf(m)))
	fmt.Fprintf(&b, "%s, %s", code(m.Experiment), runsLine(d.counts))
	if m.Smoke {
		b.WriteString(", smoke size: checks and claims are reported and decide nothing unless the experiment says so")
	}
	if m.Interrupted {
		b.WriteString(", **interrupted**")
	}
	b.WriteString(".\n")
	markdownVerdicts(&b, d)
	markdownMedians(&b, d)
	markdownDoubts(&b, d)
	return []byte(b.String())
}

func titleOf(m *results.Manifest) string {
	if m.Title != "" {
		return m.Title
	}
	return m.Experiment
}

func runsLine(c counts) string {
	s := fmt.Sprintf("%d of %d runs valid", c.Valid, c.Total)
	if c.Invalid > 0 {
		s += fmt.Sprintf(", %d invalid", c.Invalid)
	}
	if c.Failed > 0 {
		s += fmt.Sprintf(", %d failed", c.Failed)
	}
	if c.Missing > 0 {
		s += fmt.Sprintf(", %d not made", c.Missing)
	}
	return s
}

func markdownVerdicts(b *strings.Builder, d *data) {
	if len(d.Claims) == 0 && len(d.checks) == 0 {
		return
	}
	b.WriteString("\n| | claim or check | verdict | measured | published |\n|---|---|---|---|---|\n")
	for _, c := range d.Claims {
		verdict := string(c.Verdict)
		if c.Reason != "" {
			verdict += ": " + c.Reason
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", symbol(c.Verdict), markdownText(c.Name), markdownText(verdict), claimValue(c), markdownText(c.Published))
	}
	for _, c := range d.checks {
		verdict := fmt.Sprintf("passes in %d of %d runs", c.Total-c.Failed, c.Total)
		if c.Message != "" {
			verdict += "; " + c.Message
		}
		fmt.Fprintf(b, "| %s | %s | %s | | |\n", checkSymbol(c), markdownText(c.Name), markdownText(verdict))
	}
}

func symbol(v results.Verdict) string {
	switch v {
	case results.Holds:
		return "✓"
	case results.Fails:
		return "✗"
	case results.Undecided:
		return "?"
	}
	return "–"
}

func checkSymbol(c checkSum) string {
	if c.Failed > 0 {
		return "✗"
	}
	return "✓"
}

func markdownMedians(b *strings.Builder, d *data) {
	if len(d.short) == 0 {
		b.WriteString("\nNo valid run has a metric to show.\n")
		return
	}
	b.WriteString("\n| metric |")
	for _, s := range d.sweep {
		b.WriteString(" " + markdownText(s) + " |")
	}
	b.WriteString(" median | 95 % interval | n |\n|---|" + strings.Repeat("---|", len(d.sweep)) + "--:|--:|--:|\n")
	rows, ranges := 0, false
	for _, m := range d.short {
		for _, p := range d.table.Points {
			c := d.table.Cell(p.ID, m)
			if c == nil {
				continue
			}
			if rows++; rows > maxMarkdownRows {
				continue
			}
			fmt.Fprintf(b, "| %s |", code(m))
			for _, s := range d.sweep {
				b.WriteString(" " + markdownText(p.SweepText(s)) + " |")
			}
			scale := scaleOf(d.table, c)
			low, high := c.Range()
			median, lowText, highText, _ := scale.Row(c.Median, low, high, c.Mean)
			interval := lowText + " … " + highText
			switch {
			case c.N == 1:
				ranges = true
				interval = "–"
			case c.Interval == nil:
				ranges = true
				interval = "(" + interval + ")"
			}
			fmt.Fprintf(b, " %s | %s | %s |\n", median, interval, strconv.Itoa(c.N))
		}
	}
	if rows > maxMarkdownRows {
		fmt.Fprintf(b, "\nThe first %d of %d rows; summary.csv has all.\n", maxMarkdownRows, rows)
	}
	if ranges {
		fmt.Fprintf(b, "\nA 95 %% interval of the median needs at least %d valid repetitions; ( ) is the range of the values.\n", stat.MinForInterval)
	}
}

func markdownDoubts(b *strings.Builder, d *data) {
	first := true
	item := func(format string, args ...any) {
		if first {
			b.WriteString("\n")
			first = false
		}
		fmt.Fprintf(b, "- "+format+"\n", args...)
	}
	for _, r := range d.Runs {
		if !r.Usable() {
			item("left out: run %d (%s, repetition %d): %s", r.Index, code(r.Point.ID), r.Repetition, markdownText(whyLeftOut(r)))
		}
	}
	for _, n := range groupNotes(d.Runs) {
		item("%s: %s", runList(n.runs), markdownText(n.words()))
	}
}

// markdownText escapes what would break a table or start markup.
func markdownText(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ", "<", "&lt;", "*", `\*`, "_", `\_`, "`", "\\`", "[", `\[`).Replace(s)
}

// code sets s as code.
func code(s string) string {
	return "`" + strings.NewReplacer("`", "'", "\n", " ", "|", `\|`).Replace(s) + "`"
}
