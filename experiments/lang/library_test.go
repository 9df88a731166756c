package lang_test

import (
	"path/filepath"
	"strings"
	"testing"

	"wirelab/experiments/lang"
	"wirelab/experiments/plan"
)

// TestLibraryLoads loads every ready experiment, in full and in smoke size,
// with the kinds that this build has.
func TestLibraryLoads(t *testing.T) {
	files, err := filepath.Glob("../library/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no ready experiments: %v", err)
	}
	for _, f := range files {
		full, smoke := 0, 0
		for _, small := range []bool{false, true} {
			x, _, diags := lang.Load([]string{f}, lang.Options{Smoke: small})
			if len(diags) > 0 {
				var b strings.Builder
				if err := diags.WriteText(&b, 100, false); err != nil {
					t.Fatal(err)
				}
				t.Errorf("%s (smoke %v):\n%s", f, small, b.String())
				continue
			}
			if n := len(plan.New(x).Runs); small {
				smoke = n
			} else {
				full = n
			}
		}
		if smoke >= full {
			t.Errorf("%s: %d runs in smoke, %d in full", f, smoke, full)
		}
	}
}
