package lang

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// The severities of a [Diagnostic].
const (
	SeverityError   = "error"
	SeverityWarning = "warning"
)

// CodeTooManyRuns marks the diagnostic of an experiment that needs
// confirmation (Options.Yes); [Files.Size] then tells how large it is.
const CodeTooManyRuns = "too-many-runs"

// Diagnostic is one mistake or doubt, for the author of a file.
type Diagnostic struct {
	Severity string `json:"severity"` // "error" or "warning"
	Code     string `json:"code,omitempty"`
	// Summary is one short sentence without a final period; Detail says why
	// and what to write instead.
	Summary string `json:"summary"`
	Detail  string `json:"detail"`
	// File is "" for a mistake outside files (a flag). Lines and columns count
	// from 1, columns in characters; the end is exclusive.
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	EndLine   int    `json:"end_line,omitempty"`
	EndColumn int    `json:"end_column,omitempty"`
	// Snippet is the first line that the range covers.
	Snippet string `json:"snippet,omitempty"`
	// cut is how many characters the shown snippet lacks at its beginning.
	cut int
	// Block is the header of the block around: `workload "tcp" "a"`.
	Block string `json:"block,omitempty"`
	// Points tells which points have the mistake, where not all have it.
	Points string `json:"points,omitempty"`
}

// Diagnostics is everything [Load] found, in the order of the files.
type Diagnostics []Diagnostic

// HasErrors reports whether there is more than warnings.
func (d Diagnostics) HasErrors() bool { return d.Count(SeverityError) > 0 }

// Count returns the number of diagnostics of a severity.
func (d Diagnostics) Count(severity string) int {
	n := 0
	for _, x := range d {
		if x.Severity == severity {
			n++
		}
	}
	return n
}

// HasCode reports whether one of the diagnostics carries the code.
func (d Diagnostics) HasCode(code string) bool {
	return slices.ContainsFunc(d, func(x Diagnostic) bool { return x.Code == code })
}

// Error implements error with one line per error: file:line:column: summary:
// detail.
func (d Diagnostics) Error() string {
	var lines []string
	for _, x := range d {
		if x.Severity != SeverityError {
			continue
		}
		line := x.Summary + ": " + x.Detail
		if x.File != "" {
			line = fmt.Sprintf("%s:%d:%d: %s", x.File, x.Line, x.Column, line)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "no errors"
	}
	return strings.Join(lines, "\n")
}

// Err returns the diagnostics as an error, nil where none is an error.
func (d Diagnostics) Err() error {
	if !d.HasErrors() {
		return nil
	}
	return d
}

var _ error = Diagnostics(nil)

// codes are passed through hcl.Diagnostic.Extra.
type code string

// fault builds an error at a range.
func fault(at hcl.Range, summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: at.Ptr()}
}

// globalFault builds an error that belongs to no file.
func globalFault(summary, format string, args ...any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...)}
}

// sink collects diagnostics and tells the same mistake once, however many
// points and iterations have it.
type sink struct {
	entries []*finding
	index   map[findingKey]*finding
	// point is the one being evaluated, "" outside of points.
	point string
	// quiet are ranges with a mistake of reference: what evaluation says about
	// them is an echo.
	quiet []hcl.Range
	// record, where set, also takes what is added.
	record *hcl.Diagnostics
}

type findingKey struct {
	severity hcl.DiagnosticSeverity
	summary  string
	at       hcl.Range
	detail   string // only where there is no range
}

type finding struct {
	diagnostic  *hcl.Diagnostic
	first, last string
	points      int
	global      bool // also found outside of points
}

func newSink() *sink { return &sink{index: map[findingKey]*finding{}} }

func (s *sink) add(list ...*hcl.Diagnostic) {
	for _, d := range list {
		if d == nil || s.echo(d) {
			continue
		}
		if s.record != nil {
			*s.record = append(*s.record, d)
		}
		key := findingKey{severity: d.Severity, summary: d.Summary}
		if d.Subject != nil {
			key.at = *d.Subject
		} else {
			key.detail = d.Detail
		}
		f := s.index[key]
		if f == nil {
			f = &finding{diagnostic: d, first: s.point}
			s.index[key] = f
			s.entries = append(s.entries, f)
		}
		if s.point == "" {
			f.global = true
		}
		if f.points == 0 || f.last != s.point {
			f.points++
			f.last = s.point
		}
	}
}

// echo reports whether a diagnostic only repeats what a static check has
// already told about the same text.
func (s *sink) echo(d *hcl.Diagnostic) bool {
	if d.Expression == nil || d.Subject == nil {
		return false
	}
	for _, r := range s.quiet {
		if r.Filename == d.Subject.Filename && (r.Overlaps(*d.Subject) || d.Subject.Overlaps(r)) {
			return true
		}
	}
	return false
}

func (s *sink) hasErrors() bool {
	return slices.ContainsFunc(s.entries, func(f *finding) bool { return f.diagnostic.Severity == hcl.DiagError })
}

// diagnostics renders everything found, for an experiment of n points.
func (s *sink) diagnostics(files *Files, n int) Diagnostics {
	out := make(Diagnostics, 0, len(s.entries))
	for _, f := range s.entries {
		d := files.diagnostic(f.diagnostic)
		switch {
		case f.global || f.points == n:
		case f.points == 1:
			d.Points = "in point " + f.first
		default:
			d.Points = fmt.Sprintf("in %d of %d points, first %s", f.points, n, f.first)
		}
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b Diagnostic) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return out
}
