package lang

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"wirelab/emul"
)

// flagsOf reads the flags that a test file asks for in its first line:
// "# flags: --smoke --var a=1".
func flagsOf(t *testing.T, text string, o *Options) {
	t.Helper()
	line, _, _ := strings.Cut(text, "\n")
	rest, ok := strings.CutPrefix(line, "# flags: ")
	if !ok {
		return
	}
	words := strings.Fields(rest)
	for i := 0; i < len(words); i++ {
		next := func() string {
			if i++; i >= len(words) {
				t.Fatalf("a flag of %q lacks its value", line)
			}
			return words[i]
		}
		switch words[i] {
		case "--smoke":
			o.Smoke = true
		case "--yes":
			o.Yes = true
		case "--only":
			o.Only = next()
		case "--var":
			name, value, _ := strings.Cut(next(), "=")
			if o.Variables == nil {
				o.Variables = map[string]string{}
			}
			o.Variables[name] = value
		case "--repetitions":
			n, err := strconv.Atoi(next())
			if err != nil {
				t.Fatal(err)
			}
			o.Repetitions = n
		default:
			t.Fatalf("unknown flag %q", words[i])
		}
	}
}

// golden compares text with a file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got), write it with -update:\n%s", path, d)
	}
}

// TestInvalidFiles loads one file per mistake and compares what is told.
func TestInvalidFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/invalid/*.hcl")
	if err != nil || len(paths) < 50 {
		t.Fatalf("found %d files, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".hcl"), func(t *testing.T) {
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(path)
			opts := Options{
				FS: fstest.MapFS{name: {Data: source}}, Kinds: fakeKinds(), Backends: []emul.Backend{fakeBackend{}},
				Host: Host{Cores: 4, Kernel: "6.1.0", OS: "linux", Arch: "amd64"},
			}
			flagsOf(t, string(source), &opts)
			x, files, diags := Load([]string{name}, opts)
			if x != nil || files == nil || !diags.HasErrors() {
				t.Fatalf("no error: %v", diags)
			}
			var b strings.Builder
			if err := diags.WriteText(&b, 100, false); err != nil {
				t.Fatal(err)
			}
			golden(t, strings.TrimSuffix(path, ".hcl")+".txt", b.String())
			for _, d := range diags {
				if d.Detail == "" || d.Summary == "" || d.File != "" && (d.Line == 0 || d.Column == 0) {
					t.Errorf("incomplete: %+v", d)
				}
			}
		})
	}
}
