package lang

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// maxFileBytes bounds one file, so that a wrong path (a capture, a disk image)
// is told at once instead of filling the memory.
const maxFileBytes = 16 << 20

// Files are the texts that an experiment was read from, and what is known about
// it even when it could not be loaded.
type Files struct {
	names   []string
	sources map[string][]byte
	parsed  map[string]*hcl.File
	size    Size
}

// Size is how large an experiment is, before exclude takes points out.
type Size struct {
	Points      uint64 // product of the sweep, saturating
	Repetitions int
	Runs        uint64 // Points x Repetitions, saturating
}

// Size returns how many points and runs the sweep asks for; zero when the file
// was too wrong to tell.
func (f *Files) Size() Size { return f.size }

// Names lists the experiment's files in the order they were read.
func (f *Files) Names() []string { return slices.Clone(f.names) }

// Source returns the text of one file as it was read.
func (f *Files) Source(name string) []byte { return f.sources[name] }

// Joined returns the texts of all files; several are separated by a comment
// with their name.
func (f *Files) Joined() []byte {
	if len(f.names) == 1 {
		return f.sources[f.names[0]]
	}
	var b bytes.Buffer
	for _, n := range f.names {
		fmt.Fprintf(&b, "# %s\n", filepath.Base(n))
		b.Write(f.sources[n])
		if !bytes.HasSuffix(f.sources[n], []byte("\n")) {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// readExperiment reads paths, of which a directory means its *.hcl files in
// the order of their names.
func readExperiment(fsys fs.FS, paths []string, s *sink) *Files {
	f := &Files{sources: map[string][]byte{}, parsed: map[string]*hcl.File{}}
	for _, p := range paths {
		names, err := expandPath(fsys, p)
		if err != nil {
			s.add(globalFault("Cannot read "+p, "%s.", plainError(err)))
			continue
		}
		for _, n := range names {
			if _, twice := f.sources[n]; !twice && f.read(fsys, n, s) {
				f.names = append(f.names, n)
			}
		}
	}
	return f
}

// read parses one file and keeps it for snippets.
func (f *Files) read(fsys fs.FS, name string, s *sink) bool {
	source, err := readFile(fsys, name)
	if err != nil {
		s.add(globalFault("Cannot read "+name, "%s.", plainError(err)))
		return false
	}
	f.sources[name] = source
	if d := tooDeep(source, name); d != nil {
		s.add(d)
		return true
	}
	parsed, diags := hclsyntax.ParseConfig(source, name, hcl.InitialPos)
	if parsed != nil {
		f.parsed[name] = parsed
	}
	for _, d := range diags {
		s.add(f.explain(d))
	}
	return true
}

// bareQuantity is a quantity that stands without its quotes.
var bareQuantity = regexp.MustCompile(`[=,\[(]\s*([0-9][0-9.]*(?:[kmgt]?bit|[kmgt]?bps|[KMG]i?B|[kmg]b|B|ns|us|ms|s|m|h|pkt|%))(?:[\s,\])}]|$)`)

// explain rewrites the parser's words for the most frequent mistake: a quantity
// that is not in quotes.
func (f *Files) explain(d *hcl.Diagnostic) *hcl.Diagnostic {
	if d.Subject == nil || d.Severity != hcl.DiagError {
		return d
	}
	line := f.line(d.Subject.Filename, d.Subject.Start.Line)
	m := bareQuantity.FindStringSubmatchIndex(line)
	if m == nil {
		return d
	}
	text := line[m[2]:m[3]]
	at := *d.Subject
	column := utf8.RuneCountInString(line[:m[2]]) + 1
	offset := at.Start.Byte - at.Start.Column + column // right for lines of ASCII
	at.Start = hcl.Pos{Line: at.Start.Line, Column: column, Byte: max(offset, 0)}
	at.End = hcl.Pos{Line: at.Start.Line, Column: column + utf8.RuneCountInString(text), Byte: max(offset, 0) + len(text)}
	return fault(at, "Quantity without quotes", "Quantities are text with a unit: write \"%s\".", text)
}

// line returns one line of a file, counted from 1.
func (f *Files) line(name string, number int) string {
	lines := bytes.Split(f.sources[name], []byte("\n"))
	if number < 1 || number > len(lines) {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimRight(string(lines[number-1]), "\r"), "?")
}

func expandPath(fsys fs.FS, p string) ([]string, error) {
	info, err := stat(fsys, p)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{p}, nil
	}
	entries, err := readDir(fsys, p)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), ".hcl") && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, join(fsys, p, e.Name()))
		}
	}
	if len(out) == 0 {
		return nil, errors.New("the directory has no .hcl file")
	}
	return out, nil
}

func stat(fsys fs.FS, name string) (fs.FileInfo, error) {
	if fsys == nil {
		return os.Stat(name)
	}
	return fs.Stat(fsys, name)
}

func readDir(fsys fs.FS, name string) ([]fs.DirEntry, error) {
	if fsys == nil {
		return os.ReadDir(name)
	}
	return fs.ReadDir(fsys, name)
}

func join(fsys fs.FS, dir, name string) string {
	if fsys == nil {
		return filepath.Join(dir, name)
	}
	return path.Join(dir, name)
}

func readFile(fsys fs.FS, name string) ([]byte, error) {
	info, err := stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("it is a directory")
	}
	if info.Size() > maxFileBytes {
		return nil, fmt.Errorf("it has %d bytes, more than the %d an experiment may have", info.Size(), maxFileBytes)
	}
	file, err := open(fsys, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// A pipe or a device has no size that could be asked for beforehand.
	text, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err == nil && len(text) > maxFileBytes {
		err = fmt.Errorf("it has more than the %d bytes an experiment may have", maxFileBytes)
	}
	return text, err
}

func open(fsys fs.FS, name string) (fs.File, error) {
	if fsys == nil {
		return os.Open(name)
	}
	return fsys.Open(name)
}

// plainError leaves out the path that the summary already names.
func plainError(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// text returns the bytes of a range.
func (f *Files) text(r hcl.Range) string {
	src := f.sources[r.Filename]
	if r.Start.Byte < 0 || r.End.Byte > len(src) || r.Start.Byte > r.End.Byte {
		return ""
	}
	return string(src[r.Start.Byte:r.End.Byte])
}

// diagnostic renders one of the parser's diagnostics with its snippet.
func (f *Files) diagnostic(d *hcl.Diagnostic) Diagnostic {
	// Functions end their words with a question, the parser adds a period.
	out := Diagnostic{Severity: SeverityError, Summary: d.Summary, Detail: strings.ReplaceAll(d.Detail, "?.", "?")}
	if d.Severity == hcl.DiagWarning {
		out.Severity = SeverityWarning
	}
	if c, ok := d.Extra.(code); ok {
		out.Code = string(c)
	}
	if d.Subject == nil {
		return out
	}
	r := *d.Subject
	out.File, out.Line, out.Column = r.Filename, r.Start.Line, r.Start.Column
	out.EndLine, out.EndColumn = r.End.Line, r.End.Column
	out.Snippet = f.line(r.Filename, r.Start.Line)
	if p := f.parsed[r.Filename]; p != nil && p.Nav != nil {
		if nav, ok := p.Nav.(interface{ ContextString(offset int) string }); ok {
			out.Block = nav.ContextString(r.Start.Byte)
		}
	}
	return out
}
