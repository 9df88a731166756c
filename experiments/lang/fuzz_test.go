package lang

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"wirelab/emul"
)

// FuzzLoad wants no file to crash the loader, and every mistake to have a
// place inside the file.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/invalid/*.hcl", "../library/*.hcl"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range paths {
			source, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(source), false)
			f.Add(string(source), true)
		}
	}
	f.Add(buffers, true)
	kinds := fakeKinds()
	f.Fuzz(func(t *testing.T, text string, smoke bool) {
		if strings.Contains(text, "range") && len(text) > 4000 || strings.Contains(text, "hosts") && strings.Contains(text, "000") {
			t.Skip("large graphs are slow, not wrong")
		}
		opts := Options{
			FS: fstest.MapFS{"x.hcl": {Data: []byte(text)}}, Kinds: kinds, Smoke: smoke, MaxRuns: 200,
			Backends: []emul.Backend{fakeBackend{}}, Host: Host{Cores: 4},
		}
		x, files, diags := Load([]string{"x.hcl"}, opts)
		if (x == nil) != diags.HasErrors() || files == nil {
			t.Fatalf("experiment %v with %v", x, diags)
		}
		lines := strings.Count(text, "\n") + 1
		for _, d := range diags {
			if d.File != "" && (d.Line < 1 || d.Line > lines+1 || d.Column < 1) {
				t.Fatalf("outside of the file: %+v", d)
			}
		}
		var b strings.Builder
		if err := diags.WriteText(&b, 80, true); err != nil {
			t.Fatal(err)
		}
		if x == nil {
			return
		}
		again, _, _ := Load([]string{"x.hcl"}, opts)
		for i, p := range x.Points {
			if p.ID != again.Points[i].ID || string(p.Repetitions[0].Text) != string(again.Points[i].Repetitions[0].Text) {
				t.Fatalf("two loads differ in point %s", p.ID)
			}
		}
	})
}
