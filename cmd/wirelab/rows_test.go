package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wirelab/results"
)

// child is this binary as wirelab, with networks of its own.
func child(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), asMain+"=1", "WIRELAB_STATE="+filepath.Join(cmd.Dir, "state"))
	return cmd
}

const counted = `
experiment "counted" {
  duration    = "200ms"
  repetitions = 1
}
node "a" {}
node "b" {}
link "l" {
  between = ["a", "b"]
}
instrument "core_load" "cores" {
  max_steal = "100%"
}
instrument "perf" "hardware" {
  events   = ["cycles", "instructions", "cache-misses", "LLC-load-misses"]
  required = REQUIRED
}
workload "ping" "probe" {
  from     = "a"
  to       = "b"
  interval = "20ms"
}
`

// A counter that the host lacks is a status of a good run, unless the file
// requires it: then the host is unfit (exit status 4) and nothing is left.
func TestRequiredCounters(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("building a network needs root")
	}
	for _, required := range []string{"false", "true"} {
		cmd := child(t, "run", "counted.hcl", "-o", "out")
		if err := os.WriteFile(filepath.Join(cmd.Dir, "counted.hcl"), []byte(strings.ReplaceAll(counted, "REQUIRED", required)), 0o644); err != nil {
			t.Fatal(err)
		}
		said, err := cmd.CombinedOutput()
		if required == "true" {
			if got := cmd.ProcessState.ExitCode(); got != exitHost || !bytes.Contains(said, []byte("required, but not available on this host")) {
				t.Errorf("exit status %d, want %d:\n%s", got, exitHost, said)
			}
			if _, err := os.Stat(filepath.Join(cmd.Dir, "out", "runs")); err == nil {
				t.Error("a run is left")
			}
			continue
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, said)
		}
		text, err := os.ReadFile(filepath.Join(cmd.Dir, "out", "runs", "0000-all", "run.json"))
		if err != nil {
			t.Fatal(err)
		}
		var run results.Run
		if err := json.Unmarshal(text, &run); err != nil {
			t.Fatal(err)
		}
		lacking := 0
		for _, e := range run.Events {
			if e.Status != "ok" && e.Status != "multiplexed" {
				lacking++
			}
			if v, ok := run.Lookup("hardware." + strings.ReplaceAll(e.Event, "-", "_") + "_count"); ok && e.Status == "not_supported" {
				t.Errorf("%s is not supported, and counted %v", e.Event, v)
			}
		}
		if len(run.Events) != 4 {
			t.Errorf("events %+v", run.Events)
		}
		if lacking == 0 {
			t.Skip("this host counts all of them")
		}
	}
}

// The first line comes before anything is built; how soon is logged, as a busy
// machine may be slow.
func TestFirstLineComesAtOnce(t *testing.T) {
	cmd := child(t, "run", "quickstart", "--smoke", "-o", "out")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	after := time.Since(began)
	if _, statErr := os.Stat(filepath.Join(cmd.Dir, "out", "report.html")); statErr == nil {
		t.Error("the report was there before the first line")
	}
	_ = cmd.Process.Signal(os.Interrupt) // it may have ended: without root at once
	_ = cmd.Wait()
	if err != nil || !strings.HasPrefix(line, "wirelab ") || !strings.Contains(line, "quickstart") {
		t.Errorf("first line %q, %v", line, err)
	}
	if after > 20*time.Second {
		t.Errorf("the first line took %v", after)
	}
	t.Logf("the first line took %v", after)
}
