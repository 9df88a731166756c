package lang

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// colours of a terminal (ECMA-48 SGR); empty without colour.
type palette struct{ red, yellow, bold, dim, reset string }

func newPalette(color bool) palette {
	if !color {
		return palette{}
	}
	return palette{red: "\x1b[31m", yellow: "\x1b[33m", bold: "\x1b[1m", dim: "\x1b[2m", reset: "\x1b[0m"}
}

const (
	// maxTold bounds how many diagnostics people are shown: a file that is no
	// experiment at all has one a line.
	maxTold = 30
	// maxSnippet bounds a shown line of a file, in characters.
	maxSnippet = 160
)

// WriteText writes the diagnostics for people: summary, file:line:column, the
// line with the place marked, and the detail wrapped to width columns (0: not
// wrapped). It shows the first 30, the part of a long line that matters, and no
// control characters, which a terminal would obey.
func (d Diagnostics) WriteText(w io.Writer, width int, color bool) error {
	p := newPalette(color)
	var b strings.Builder
	for _, x := range d[:min(len(d), maxTold)] {
		x.printable().text(&b, p, width)
		b.WriteByte('\n')
	}
	if more := len(d) - maxTold; more > 0 {
		fmt.Fprintf(&b, "and %d more, which may follow from these\n\n", more)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON writes one JSON array of diagnostics.
func (d Diagnostics) WriteJSON(w io.Writer) error {
	if d == nil {
		d = Diagnostics{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

func (x Diagnostic) text(b *strings.Builder, p palette, width int) {
	word, colour := "Error", p.red
	if x.Severity == SeverityWarning {
		word, colour = "Warning", p.yellow
	}
	fmt.Fprintf(b, "%s%s%s:%s %s%s%s\n", p.bold, colour, word, p.reset, p.bold, x.Summary, p.reset)
	if x.File != "" {
		fmt.Fprintf(b, "  %s:%d:%d", x.File, x.Line, x.Column)
		if x.Block != "" {
			fmt.Fprintf(b, ", in %s", x.Block)
		}
		b.WriteByte('\n')
		if x.Snippet != "" {
			number := fmt.Sprintf("%5d", x.Line)
			fmt.Fprintf(b, "%s%s |%s %s\n", p.dim, number, p.reset, x.Snippet)
			fmt.Fprintf(b, "%s%s |%s %s%s%s\n", p.dim, strings.Repeat(" ", len(number)), p.reset, colour, x.marker(), p.reset)
		}
	}
	if x.Points != "" {
		fmt.Fprintf(b, "  (%s)\n", x.Points)
	}
	for _, line := range wrap(x.Detail, width-2) {
		fmt.Fprintf(b, "  %s\n", line)
	}
}

// printable returns the diagnostic as it may be shown: without control
// characters, and with the snippet cut to what surrounds its place.
func (x Diagnostic) printable() Diagnostic {
	for _, s := range []*string{&x.Summary, &x.Detail, &x.File, &x.Block, &x.Snippet} {
		*s = strings.Map(func(r rune) rune {
			if unicode.IsControl(r) && r != '\n' && r != '\t' {
				return unicode.ReplacementChar
			}
			return r
		}, *s)
	}
	line := []rune(x.Snippet)
	if len(line) <= maxSnippet {
		return x
	}
	// Columns of the cut line; those shown to people stay.
	from := max(min(x.Column-1-maxSnippet/4, len(line)-maxSnippet), 0)
	cut := string(line[from : from+maxSnippet])
	if from > 0 {
		cut = "…" + cut
	}
	if from+maxSnippet < len(line) {
		cut += "…"
	}
	x.Snippet, x.cut = cut, from
	if from > 0 {
		x.cut-- // for the mark of what is left out
	}
	return x
}

// marker underlines the range below the snippet, keeping tabs as they are so
// that the marks stay under their characters.
func (x Diagnostic) marker() string {
	var b strings.Builder
	start, end, length := x.Column-x.cut, x.EndColumn-x.cut, utf8.RuneCountInString(x.Snippet)
	if x.EndLine != x.Line {
		end = length + 1
	} else if length > maxSnippet {
		end = min(end, length+1)
	}
	column := 1
	for _, r := range x.Snippet {
		if column >= start {
			break
		}
		if r == '\t' {
			b.WriteByte('\t')
		} else {
			b.WriteByte(' ')
		}
		column++
	}
	b.WriteString(strings.Repeat("^", max(1, end-start)))
	return b.String()
}

// wrap breaks text into lines of at most width characters, at spaces; lines of
// the text itself are kept.
func wrap(text string, width int) []string {
	if text == "" {
		return nil
	}
	var out []string
	for _, paragraph := range strings.Split(text, "\n") {
		if width < 20 {
			out = append(out, paragraph)
			continue
		}
		line := ""
		for _, word := range strings.Fields(paragraph) {
			if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
				out = append(out, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		out = append(out, line)
	}
	return out
}
