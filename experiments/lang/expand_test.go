package lang

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"wirelab/experiments"
)

const plain = `
experiment "x" {
  duration = "10s"
}
`

func ids(x *experiments.Experiment) []string {
	var out []string
	for _, p := range x.Points {
		out = append(out, p.ID)
	}
	return out
}

// TestMatrix is three congestion controls by four RTTs without two of the
// combinations, five times: exactly fifty runs with stable names.
func TestMatrix(t *testing.T) {
	x := mustLoad(t, `
experiment "matrix" {
  duration    = "1s"
  repetitions = 5
}
sweep {
  cca = ["cubic", "reno", "bbr"]
  rtt = ["10ms", "20ms", "40ms", "80ms"]
}
exclude {
  when = sweep.cca == "bbr" && sweep.rtt == "80ms"
}
exclude {
  when = sweep.cca == "reno" && sweep.rtt == "10ms"
}
`)
	runs := 0
	for _, p := range x.Points {
		runs += len(p.Repetitions)
	}
	want := []string{
		"cca=cubic,rtt=10ms", "cca=cubic,rtt=20ms", "cca=cubic,rtt=40ms", "cca=cubic,rtt=80ms",
		"cca=reno,rtt=20ms", "cca=reno,rtt=40ms", "cca=reno,rtt=80ms",
		"cca=bbr,rtt=10ms", "cca=bbr,rtt=20ms", "cca=bbr,rtt=40ms",
	}
	if runs != 50 || !slices.Equal(ids(x), want) {
		t.Errorf("%d runs of %v", runs, ids(x))
	}
}

func TestPointNames(t *testing.T) {
	x := mustLoad(t, plain+`
sweep {
  a = [0.5, 1e6, true, "x y/z", "x_y_z", "2%", ""]
}
`)
	got := ids(x)
	want := []string{"a=0.5", "a=1000000", "a=true", "a=x_y_z", "", "a=2pct", "a=_"}
	for i, w := range want {
		if w != "" && got[i] != w {
			t.Errorf("point %d is called %q, want %q", i, got[i], w)
		}
	}
	if !strings.HasPrefix(got[4], "a=x_y_z-") || len(got[4]) != len("a=x_y_z-")+8 {
		t.Errorf("a name that is taken becomes %q", got[4])
	}
	if n := x.Points[1].Sweep[0].Number; n == nil || *n != 1e6 || x.Points[2].Sweep[0].Number != nil {
		t.Errorf("numbers: %+v", x.Points)
	}
	long := mustLoad(t, plain+"\nsweep {\n  a = [\""+strings.Repeat("long", 100)+"\", \""+strings.Repeat("long", 101)+"\"]\n}\n")
	if a, b := long.Points[0].ID, long.Points[1].ID; len(a) > maxID || a == b {
		t.Errorf("long names: %q and %q", a, b)
	}
	if all := mustLoad(t, plain); all.Points[0].ID != "all" || len(all.Points) != 1 {
		t.Errorf("without a sweep: %v", ids(all))
	}
}

func TestOnly(t *testing.T) {
	text := plain + "\nsweep {\n  a = [1, 2]\n  b = [\"x\", \"y\"]\n}\n"
	for only, want := range map[string][]string{
		"a=1,b=y": {"a=1,b=y"}, "b=x": {"a=1,b=x", "a=2,b=x"}, "b=y,a=2": {"a=2,b=y"}, "": {"a=1,b=x", "a=1,b=y", "a=2,b=x", "a=2,b=y"},
	} {
		x := mustLoad(t, text, func(o *Options) { o.Only = only })
		if !slices.Equal(ids(x), want) {
			t.Errorf("--only %s: %v", only, ids(x))
		}
	}
}

// TestPrecedence: a flag beats the smoke block, which beats the file.
func TestPrecedence(t *testing.T) {
	text := `
experiment "x" {
  duration    = "10s"
  warmup      = "3s"
  repetitions = 6
  seed        = 7
  smoke {
    duration    = "2s"
    repetitions = 1
    claims      = true
    variables   = { a = 20, b = 20 }
    sweep       = { s = [3] }
  }
}
variable "a" { default = 10 }
variable "b" { default = 10 }
variable "c" { default = 10 }
variable "d" { default = 10 }
sweep {
  s = [1, 2]
  t = [1]
}
`
	file := filepath.Join(t.TempDir(), "values.hcl")
	if err := os.WriteFile(file, []byte("b = 30\nc = 30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := func(o *Options) {
		o.Smoke = true
		o.VarFiles = []string{file}
		o.Variables = map[string]string{"c": "40"}
	}
	x := mustLoad(t, text, flags)
	if got := fmt.Sprint(x.Variables); got != "map[a:20 b:30 c:40 d:10]" {
		t.Errorf("variables: %s", got)
	}
	if x.Duration != 2*time.Second || x.Warmup != 3*time.Second || x.Repetitions != 1 || !x.SmokeClaims || !slices.Equal(ids(x), []string{"s=3,t=1"}) {
		t.Errorf("smoke: %+v", x)
	}
	warmup, seed := time.Second, uint64(9)
	x = mustLoad(t, text, flags, func(o *Options) { o.Repetitions, o.Warmup, o.Seed = 2, &warmup, &seed })
	if x.Repetitions != 2 || x.Warmup != time.Second || x.Duration != 2*time.Second || x.Seed != 9 {
		t.Errorf("flags: %+v", x)
	}
	if x = mustLoad(t, text); x.Duration != 10*time.Second || x.SmokeClaims || x.Smoke || len(x.Points) != 2 {
		t.Errorf("without smoke: %+v", x)
	}
}

func TestTooManyRuns(t *testing.T) {
	text := plain + "\nsweep {\n  a = range(100)\n  b = range(100)\n  c = range(100)\n}\n"
	x, files, diags := loadText(t, text)
	if x != nil || !diags.HasCode(CodeTooManyRuns) || files.Size() != (Size{1_000_000, 6, 6_000_000}) {
		t.Errorf("%v, size %+v", diags, files.Size())
	}
	few := mustLoad(t, text, func(o *Options) { o.Only = "a=7,b=8,c=9" })
	if !slices.Equal(ids(few), []string{"a=7,b=8,c=9"}) {
		t.Errorf("--only of a large sweep: %v", ids(few))
	}
	small := plain + "\nsweep {\n  a = range(10)\n}\n"
	if _, _, diags := loadText(t, small, func(o *Options) { o.MaxRuns = 59 }); !diags.HasCode(CodeTooManyRuns) {
		t.Errorf("60 runs of at most 59: %v", diags)
	}
	mustLoad(t, small, func(o *Options) { o.MaxRuns = 60 })
	mustLoad(t, small, func(o *Options) { o.MaxRuns, o.Yes = 59, true })
}

func TestVariables(t *testing.T) {
	x := mustLoad(t, plain+`
variable "list" {
  type    = list(number)
  default = [1]
}
variable "link" {
  type = object({ rate = string, delay = optional(string, "1ms") })
}
variable "untyped" { default = true }
variable "any" {}
sweep {
  a = var.list
  b = [var.link.rate, var.link.delay]
  c = [var.untyped ? "yes" : "no", var.any]
}
`, func(o *Options) {
		o.Variables = map[string]string{"list": "[3, 4]", "link": `{ rate = "1mbit" }`, "untyped": "false", "any": "free text"}
	})
	if got := ids(x); len(got) != 8 || got[0] != "a=3,b=1mbit,c=no" || got[7] != "a=4,b=1ms,c=free_text" {
		t.Errorf("points: %v", got)
	}
	if x.Variables["link"] != `{"delay":"1ms","rate":"1mbit"}` || x.Variables["list"] != "[3,4]" {
		t.Errorf("variables as text: %v", x.Variables)
	}
}

// TestDirectory reads several files as one experiment.
func TestDirectory(t *testing.T) {
	fs := fstest.MapFS{
		"exp/main.hcl":  {Data: []byte(plain)},
		"exp/net.hcl":   {Data: []byte("topology \"dumbbell\" \"net\" {}\n")},
		"exp/work.hcl":  {Data: []byte("workload \"tcp\" \"t\" {\n  from = \"left1\"\n  to   = \"rihgt1\"\n}\n")},
		"exp/notes.txt": {Data: []byte("not read")},
	}
	_, files, diags := Load([]string{"exp"}, Options{FS: fs, Kinds: fakeKinds()})
	if len(diags) != 1 || diags[0].File != "exp/work.hcl" || diags[0].Line != 3 {
		t.Errorf("diagnostics: %v", diags)
	}
	if got := files.Names(); len(got) != 3 || !strings.Contains(string(files.Joined()), "# net.hcl\ntopology") {
		t.Errorf("files: %v\n%s", got, files.Joined())
	}
	if _, _, diags := Load([]string{"nowhere"}, Options{FS: fs}); !diags.HasErrors() {
		t.Error("a missing file is no error")
	}
}

// TestRepetitions evaluates run.* in every repetition, and shares setups where
// nothing depends on it.
func TestRepetitions(t *testing.T) {
	x := mustLoad(t, judged+`
workload "tcp" "c" {
  from  = "left1"
  to    = "right1"
  flows = run.repetition + 1
}
`)
	for _, p := range x.Points {
		for r, s := range p.Repetitions {
			if w := s.Workloads[2].Config.(*fakeTraffic); w.Flows != r+1 {
				t.Errorf("%s repetition %d has %d flows", p.ID, r, w.Flows)
			}
		}
	}
	x = mustLoad(t, judged)
	s := x.Points[0].Repetitions
	if s[0].Topology != s[2].Topology || &s[0].Text[0] != &s[2].Text[0] {
		t.Error("equal repetitions are evaluated apart")
	}
}
