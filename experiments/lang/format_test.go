package lang

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func TestFormatGolden(t *testing.T) {
	const untidy = "\n\n# the question\nexperiment   \"a\"   {\nduration=\"10s\"   \n  warmup  =  \"1s\" // short\n\n\n\n\ttitle = \"  two  spaces \"\n}\r\nlocals{\nx=<<EOT\nkeep   \n\n\n  this\nEOT\ny = [1,2,\n3]\n}\n\n\n"
	const tidy = `# the question
experiment "a" {
  duration = "10s"
  warmup   = "1s" // short

  title = "  two  spaces "
}
locals {
  x = <<EOT
keep   


  this
EOT
  y = [1, 2,
  3]
}
`
	got, diags := Format("x.hcl", []byte(untidy))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if d := cmp.Diff(tidy, string(got)); d != "" {
		t.Errorf("formatted text (-want +got):\n%s", d)
	}
	if again, _ := Format("x.hcl", got); !bytes.Equal(again, got) {
		t.Errorf("formatting twice changes the text:\n%s", cmp.Diff(string(got), string(again)))
	}
}

func TestFormatLeavesBrokenFilesAlone(t *testing.T) {
	const broken = "experiment \"a\" {\n  duration = = \n"
	got, diags := Format("x.hcl", []byte(broken))
	if string(got) != broken || !diags.HasErrors() || diags[0].Line != 2 {
		t.Errorf("got %q, %v", got, diags)
	}
}

// TestReadyExperimentsAreFormatted keeps the files that we ship in our own
// layout.
func TestReadyExperimentsAreFormatted(t *testing.T) {
	files, err := filepath.Glob("../library/*.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		source, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := Format(f, source); !bytes.Equal(got, source) {
			t.Errorf("%s is not formatted (-have +want):\n%s", f, cmp.Diff(string(source), string(got)))
		}
	}
}

// meaning is the sequence of tokens without layout: what the parser sees.
func meaning(t *testing.T, source []byte) []string {
	t.Helper()
	tokens, _ := hclsyntax.LexConfig(source, "", hcl.InitialPos)
	var out []string
	for _, k := range tokens {
		text := string(bytes.ReplaceAll(k.Bytes, []byte("\r"), nil))
		switch k.Type {
		case hclsyntax.TokenNewline:
			if len(out) == 0 || out[len(out)-1] == "\n" {
				continue
			}
			text = "\n"
		case hclsyntax.TokenComment:
			trimmed := bytes.TrimRight(k.Bytes, " \t\r\n")
			text = string(bytes.ReplaceAll(trimmed, []byte("\r"), nil))
			out = append(out, text)
			if bytes.HasSuffix(k.Bytes, []byte("\n")) {
				out = append(out, "\n")
			}
			continue
		case hclsyntax.TokenEOF:
			continue
		case hclsyntax.TokenCHeredoc:
			text = string(bytes.TrimSpace(k.Bytes))
		}
		out = append(out, text)
	}
	for len(out) > 0 && out[len(out)-1] == "\n" {
		out = out[:len(out)-1]
	}
	return out
}

func FuzzFormat(f *testing.F) {
	f.Add([]byte(buffers))
	f.Add([]byte("a = <<-X\n  b ${c}   \n\n\n X\n# x   \n/* a  \n\n\n b */ d = 1\n"))
	f.Add([]byte("a {\nb=1\nlonger=2\n\n}\nc=[\n1,\n\n\n2]"))
	f.Fuzz(func(t *testing.T, source []byte) {
		got, diags := Format("x.hcl", source)
		if diags.HasErrors() {
			if !bytes.Equal(got, source) {
				t.Fatalf("a broken file was changed:\n%q\n%q", source, got)
			}
			return
		}
		if _, again := hclsyntax.ParseConfig(got, "x.hcl", hcl.InitialPos); again.HasErrors() {
			t.Fatalf("the formatted text does not parse: %v\n%q\n%q", again, source, got)
		}
		if d := cmp.Diff(meaning(t, source), meaning(t, got)); d != "" {
			t.Fatalf("formatting changes the meaning (-before +after):\n%s\n%q\n%q", d, source, got)
		}
		if twice, _ := Format("x.hcl", got); !bytes.Equal(twice, got) {
			t.Fatalf("formatting twice changes the text:\n%q\n%q", got, twice)
		}
	})
}
