package lang_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirelab/experiments/lang"
)

// TestLibraryLoads loads every ready experiment, in full and in smoke size,
// with the kinds that this build has.
func TestLibraryLoads(t *testing.T) {
	files, err := filepath.Glob("../library/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no ready experiments: %v", err)
	}
	for _, f := range files {
		for _, smoke := range []bool{false, true} {
			x, _, diags := lang.Load([]string{f}, lang.Options{Smoke: smoke})
			var b strings.Builder
			if err := diags.WriteText(&b, 100, false); err != nil {
				t.Fatal(err)
			}
			if diags.HasErrors() {
				t.Errorf("%s (smoke %v):\n%s", f, smoke, b.String())
				continue
			}
			t.Logf("%s: %d points, %d notes\n%s%s", f, len(x.Points), len(x.Notes), strings.Join(x.Notes, "\n"), b.String())
		}
	}
	_ = os.Stdout
}
