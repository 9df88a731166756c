package lang

import (
	"bytes"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Format returns a file in the one layout that all files have: two spaces for
// each level, equals signs of neighbouring lines below each other, no spaces at
// the ends of lines, at most one empty line in a row, a newline at the end.
// Comments and the text of strings stay as they are, and formatting a
// formatted file changes nothing. A file that does not parse is returned
// unchanged with what is wrong with it; name is its name in the diagnostics.
func Format(name string, source []byte) ([]byte, Diagnostics) {
	s := newSink()
	f := &Files{names: []string{name}, sources: map[string][]byte{name: source}, parsed: map[string]*hcl.File{}}
	if d := tooDeep(source, name); d != nil {
		s.add(d)
		return source, s.diagnostics(f, 0)
	}
	_, diags := hclsyntax.ParseConfig(source, name, hcl.InitialPos)
	if diags.HasErrors() {
		s.add(diags...)
		return source, s.diagnostics(f, 0)
	}
	out := layOut(source)
	// One pass may move a line next to another that it then lines up with.
	for range 8 {
		next := layOut(out)
		if bytes.Equal(next, out) {
			break
		}
		out = next
	}
	return out, nil
}

func layOut(source []byte) []byte {
	return tidyLines(hclwrite.Format(bytes.ReplaceAll(source, []byte("\r\n"), []byte("\n"))))
}

// tidyLines removes spaces at the ends of lines and empty lines beyond one, but
// leaves what is inside of strings and heredocs as it is.
func tidyLines(source []byte) []byte {
	protected := protectedLines(source)
	var out []byte
	empty := 0
	lines := bytes.Split(source, []byte("\n"))
	for i, line := range lines {
		if !protected[i+1] {
			line = bytes.TrimRight(line, " \t\r")
			if len(line) == 0 {
				if empty++; empty > 1 || len(out) == 0 {
					continue
				}
			} else {
				empty = 0
			}
		} else {
			empty = 0
		}
		out = append(out, line...)
		out = append(out, '\n')
	}
	out = bytes.TrimRight(out, "\n")
	if len(out) == 0 {
		return nil
	}
	return append(out, '\n')
}

// protectedLines are the lines, from 1, whose end lies inside a token that
// spans lines: a heredoc or a comment between /* and */.
func protectedLines(source []byte) map[int]bool {
	tokens, _ := hclsyntax.LexConfig(source, "", hcl.InitialPos)
	out := map[int]bool{}
	heredoc := 0
	for _, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenOHeredoc:
			heredoc = t.Range.Start.Line
		case hclsyntax.TokenCHeredoc:
			// The line of the closing mark itself may be trimmed.
			for n := heredoc; n < t.Range.End.Line; n++ {
				out[n] = true
			}
		default:
			if t.Type != hclsyntax.TokenNewline && t.Type != hclsyntax.TokenEOF {
				for n := t.Range.Start.Line; n < t.Range.End.Line; n++ {
					if t.Type != hclsyntax.TokenComment || bytes.HasPrefix(t.Bytes, []byte("/*")) {
						out[n] = true
					}
				}
			}
		}
	}
	return out
}
