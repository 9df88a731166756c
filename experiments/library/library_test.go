package library_test

import (
	"strings"
	"testing"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/experiments/lang"
	"wirelab/experiments/library"
	"wirelab/experiments/plan"
)

// TestPlans plans every ready experiment, in full and in its smoke size.
func TestPlans(t *testing.T) {
	for _, name := range library.Names() {
		for _, smoke := range []bool{false, true} {
			exp, _, diags := lang.Load([]string{name + ".hcl"}, lang.Options{
				FS: library.Files(), Smoke: smoke, Host: lang.Host{Cores: 2, Kernel: "6.1.0"},
				Backends: []emul.Backend{software.New(software.Options{})},
			})
			if diags.HasErrors() {
				t.Errorf("%s (smoke %t): %v", name, smoke, diags)
				continue
			}
			if exp.Name != name {
				t.Errorf("%s.hcl holds experiment %q", name, exp.Name)
			}
			p := plan.New(exp)
			if len(p.Runs) == 0 {
				t.Errorf("%s (smoke %t) plans no run", name, smoke)
			}
			if smoke && len(p.Runs) > 4 {
				t.Errorf("%s makes %d runs in smoke size, more than a CI job waits for", name, len(p.Runs))
			}
		}
	}
}

// TestSummaries wants each experiment to say in its first comment what it is.
func TestSummaries(t *testing.T) {
	for _, name := range library.Names() {
		if s := library.Summary(name); len(s) < 20 || !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
			t.Errorf("%s begins with no sentence: %q", name, s)
		}
	}
}

// TestFormatted keeps the files as `wirelab fmt` writes them.
func TestFormatted(t *testing.T) {
	for _, name := range library.Names() {
		src, file, err := library.Source(name)
		if err != nil {
			t.Fatal(err)
		}
		out, diags := lang.Format(file, src)
		if diags.HasErrors() {
			t.Errorf("%s: %v", file, diags)
		}
		if string(out) != string(src) {
			t.Errorf("%s is not formatted; want\n%s", file, out)
		}
	}
}

func TestUnknown(t *testing.T) {
	_, _, err := library.Source("nonsense")
	if err == nil || !strings.Contains(err.Error(), "quickstart") {
		t.Errorf("an unknown name must list the known ones, got %v", err)
	}
}
