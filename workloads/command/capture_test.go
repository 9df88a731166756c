package command

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a path or expression finds in outputs that tools really leave behind.
// Only banner and stream-cut hold a number; from all others nothing may come.
func TestCaptureBrokenOutputs(t *testing.T) {
	iperf := Capture{Name: "goodput_bps", JSON: "$.end.sum_received.bits_per_second", Unit: "bit/s"}
	lines := Capture{Name: "rate_bps", Regex: `(?m)(\S+) bits/sec|Requests/sec:\s+(\S+)`, Unit: "bit/s"}
	rtt := Capture{Name: "rtt_s", Regex: `rtt min/avg/max/mdev = [\d.]+/([\d.]+)/`, Unit: "s", Scale: 1e-3}
	holds := map[string]float64{"banner.txt": 93500000.25, "stream-cut.txt": 77}
	files, err := filepath.Glob("testdata/broken/*.txt")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d outputs, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, isThere := holds[filepath.Base(file)]
		v, ok, why := iperf.find(text)
		if ok != isThere || v != want {
			t.Errorf("%s: %v, %v (%s), want %v", file, v, ok, why, want)
		}
		if !ok && why == "" {
			t.Errorf("%s: nothing found, and no word why", file)
		}
		for _, k := range []Capture{lines, rtt} {
			if v, ok, _ := k.find(text); ok {
				t.Errorf("%s: %s became %v", file, k.Name, v)
			}
		}
	}
}

func TestCaptureSelect(t *testing.T) {
	text := []byte("x 3\nx 1\nx 2\nx nan\n")
	for selection, want := range map[string]float64{"": 2, "last": 2, "first": 3, "min": 1, "max": 3, "mean": 2, "sum": 6} {
		k := Capture{Name: "x_count", Regex: `x (\S+)`, Unit: "1", Select: selection, Scale: 10}
		if v, ok, why := k.find(text); !ok || v != 10*want {
			t.Errorf("%q: %v, %v, %s", selection, v, ok, why)
		}
	}
}

func TestCaptureWithoutGroupTakesAllOfIt(t *testing.T) {
	k := Capture{Name: "x_count", Regex: `[0-9.]+`, Unit: "1"}
	if v, ok, why := k.find([]byte("about 2.5 of them")); !ok || v != 2.5 {
		t.Errorf("%v, %v, %s", v, ok, why)
	}
}

func TestValidateFindsEveryMistake(t *testing.T) {
	fresh := func() *Command {
		c := Kind().New().(*Command)
		c.On, c.Argv = "a", []string{"sh", "-c", "true"}
		return c
	}
	script := filepath.Join(t.TempDir(), "client.py")
	if err := os.WriteFile(script, []byte("print(1)"), 0o644); err != nil {
		t.Fatal(err)
	}
	good := Capture{Name: "x_count", Regex: "x", Unit: "1"}
	with := func(change func(*Capture)) func(*Command) {
		return func(c *Command) {
			k := good
			change(&k)
			c.Captures = []Capture{k}
		}
	}
	for name, c := range map[string]struct {
		change func(*Command)
		path   string
		words  string
	}{
		"no node":           {func(c *Command) { c.On = "" }, "", `"on"`},
		"from":              {func(c *Command) { c.From = "b" }, "", "two commands"},
		"not found":         {func(c *Command) { c.Argv[0] = "no-such-program" }, "argv", "PATH (" + os.Getenv("PATH")},
		"not found in env":  {func(c *Command) { c.Env = map[string]string{"PATH": "/nowhere"} }, "argv", "/nowhere"},
		"empty argv":        {func(c *Command) { c.Argv = nil }, "argv", "empty"},
		"not executable":    {func(c *Command) { c.Argv[0] = script }, "argv", "chmod +x"},
		"directory":         {func(c *Command) { c.Argv[0] = filepath.Dir(script) }, "argv", "is a directory"},
		"signal":            {func(c *Command) { c.StopSignal = "HUP" }, "stop_signal", "INT"},
		"grace":             {func(c *Command) { c.Grace = 1e10 }, "grace", "3s"},
		"status":            {func(c *Command) { c.ExpectStatus = 256 }, "expect_status", "255"},
		"protocol":          {func(c *Command) { c.Protocol = "http" }, "protocol", "actor"},
		"env":               {func(c *Command) { c.Env = map[string]string{"A=B": "1"} }, "env", "A=B"},
		"blind server":      {func(c *Command) { c.Server = true }, "server", "ready { port"},
		"ready, no server":  {func(c *Command) { c.Ready = &Ready{Port: 1} }, "ready", "server = true"},
		"two signs":         {func(c *Command) { c.Server, c.Ready = true, &Ready{Port: 1, Regex: "x"} }, "ready", "either"},
		"ready regex":       {func(c *Command) { c.Server, c.Ready = true, &Ready{Regex: "("} }, "ready.regex", "missing closing"},
		"ready port":        {func(c *Command) { c.Server, c.Ready = true, &Ready{Port: 70000} }, "ready.port", "65535"},
		"capture name":      {with(func(k *Capture) { k.Name = "Good Put" }), "capture.0", "lower case"},
		"reserved name":     {with(func(k *Capture) { k.Name = "cpu_s" }), "capture.0", "taken"},
		"no unit":           {with(func(k *Capture) { k.Unit = "" }), "capture.0.unit", "unit"},
		"no way":            {with(func(k *Capture) { k.Regex = "" }), "capture.0", "regex"},
		"two ways":          {with(func(k *Capture) { k.JSON = "$.x" }), "capture.0", "either"},
		"bad regex":         {with(func(k *Capture) { k.Regex = "(" }), "capture.0.regex", "missing closing"},
		"bad path":          {with(func(k *Capture) { k.Regex, k.JSON = "", "end.sum" }), "capture.0.json", "$.end"},
		"from nowhere":      {with(func(k *Capture) { k.From = "stdin" }), "capture.0.from", "file:PATH"},
		"selection":         {with(func(k *Capture) { k.Select = "median" }), "capture.0.select", "mean"},
		"scale":             {with(func(k *Capture) { k.Scale = math.Inf(1) }), "capture.0.scale", "1"},
		"capture and actor": {func(c *Command) { c.Protocol, c.Captures = "actor", []Capture{good} }, "capture.0", "summary"},
	} {
		x := fresh()
		c.change(x)
		problems := x.Validate()
		if len(problems) != 1 {
			t.Errorf("%s: %d problems: %v", name, len(problems), problems)
			continue
		}
		if p := problems[0]; strings.Join(p.Path, ".") != c.path || !strings.Contains(p.Detail, c.words) {
			t.Errorf("%s: at %v: %s: %s", name, p.Path, p.Summary, p.Detail)
		}
	}
	x := fresh()
	x.Captures = []Capture{good, {Name: "y_s", JSON: "$.a[*].b", Unit: "s"}}
	if problems := x.Validate(); len(problems) > 0 {
		t.Errorf("a good command is refused: %v", problems)
	}
}

func TestProgramRelativeToTheExperiment(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "client.sh"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c := Kind().New().(*Command)
	c.Argv = []string{"./client.sh"}
	if _, err := c.program(); err == nil {
		t.Error("found without being told where the experiment is")
	}
	c.Locate(dir)
	if path, err := c.program(); err != nil || path != filepath.Join(dir, "client.sh") {
		t.Errorf("%s, %v", path, err)
	}
}

func FuzzCapture(f *testing.F) {
	files, _ := filepath.Glob("testdata/broken/*.txt")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(text)
		}
	}
	captures := []Capture{
		{Name: "a_bps", JSON: "$.end.sum_received.bits_per_second", Unit: "1"},
		{Name: "b_bps", JSON: "$..bits_per_second", Unit: "1", Select: "mean"},
		{Name: "c_bps", JSON: "$[?@.bps > 0].bps", Unit: "1", Select: "sum"},
		{Name: "d_bps", Regex: `(\S+) bits/sec`, Unit: "1", Select: "max", Scale: 1e300},
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, k := range captures {
			v, ok, why := k.find(text)
			if math.IsNaN(v) || math.IsInf(v, 0) || !ok && (v != 0 || why == "") {
				t.Errorf("%s: %v, %v, %q", k.Name, v, ok, why)
			}
		}
	})
}
