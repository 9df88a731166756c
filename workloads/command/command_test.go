package command_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"wirelab/results"
	"wirelab/workloads"
	"wirelab/workloads/command"
	"wirelab/workloads/rehearse"
)

// TestMain lets the test binary be its own actor, as wirelab is.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "actor" {
		os.Exit(workloads.RunActor(context.Background(), []workloads.Kind{command.Kind()}, os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

func shell(script string, change ...func(*command.Command)) *command.Command {
	c := command.Kind().New().(*command.Command)
	c.On, c.Argv, c.Grace = "a", []string{"sh", "-c", script}, 0
	for _, f := range change {
		f(c)
	}
	return c
}

func capture(k command.Capture) func(*command.Command) {
	return func(c *command.Command) {
		if k.Unit == "" {
			k.Unit = "1"
		}
		c.Captures = append(c.Captures, k)
	}
}

// readyAt makes it a server, which is not stopped before it printed something
// that matches, however busy the host is.
func readyAt(regex string) func(*command.Command) {
	return func(c *command.Command) { c.Server, c.Ready = true, &command.Ready{Regex: regex} }
}

type played struct {
	rehearse.Result
	actor workloads.Result
	err   error
	dir   string
}

// play runs a command until it ends, or for at most the seconds given.
func play(t *testing.T, c *command.Command, seconds float64) played {
	t.Helper()
	for _, p := range c.Validate() {
		if !p.Warning {
			t.Fatalf("configuration: %v", p)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	p := played{dir: t.TempDir()}
	p.Result, p.err = rehearse.Run(ctx, rehearse.Options{Binary: os.Args[0], Kind: "command", Workload: c, Dir: p.dir, Seed: 7,
		Window: workloads.Window{Start: 0, End: seconds}})
	p.actor = p.Actors["w.runner"]
	return p
}

func TestStatuses(t *testing.T) {
	number := capture(command.Capture{Name: "speed_bps", Regex: `speed (\S+)`, Unit: "bit/s", Scale: 1e6})
	for _, c := range []struct {
		name, script string
		change       func(*command.Command)
		actor        results.Status
		outcome      results.Status // "" where the actor did not get that far
		words        string         // in the error
		value        float64
	}{
		{name: "ok", script: "echo warm; echo speed 3; echo speed 4.5", actor: results.StatusOK, outcome: results.StatusOK, value: 4.5e6},
		{name: "failed", script: "echo speed 3; echo no route to the moon >&2; exit 7", actor: results.StatusFailed, words: "exit status 7, expected 0: no route to the moon"},
		{name: "crashed", script: "echo speed 3; kill -SEGV $$", actor: results.StatusCrashed, words: "ended by signal 11"},
		{name: "no data", script: "echo demo mode not configured", actor: results.StatusOK, outcome: results.StatusNoData},
		{name: "nan", script: "echo speed nan", actor: results.StatusOK, outcome: results.StatusNoData},
		{name: "status expected", script: "echo speed 1; exit 3", change: func(c *command.Command) { c.ExpectStatus = 3 },
			actor: results.StatusOK, outcome: results.StatusOK, value: 1e6},
		{name: "timeout", script: "echo waiting for godot; exec sleep 60", change: func(c *command.Command) { c.Timeout = 2 * time.Second },
			actor: results.StatusFailed, words: "longer than its timeout of 2s: waiting for godot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := shell(c.script, number)
			if c.change != nil {
				c.change(w)
			}
			p := play(t, w, 30)
			if p.actor.Status != c.actor {
				t.Fatalf("actor %s (%s), want %s", p.actor.Status, p.actor.Error, c.actor)
			}
			if !strings.Contains(p.actor.Error, c.words) {
				t.Errorf("error %q lacks %q", p.actor.Error, c.words)
			}
			if p.Status != c.outcome {
				t.Errorf("outcome %q, want %q (%v)", p.Status, c.outcome, p.Notes)
			}
			v, ok := p.Values["speed_bps"]
			if c.value == 0 && ok || c.value != 0 && v != c.value {
				t.Errorf("speed_bps = %v, %v", v, ok)
			}
			if text, err := os.ReadFile(filepath.Join(p.dir, "w.stdout")); err != nil || len(text) == 0 {
				t.Errorf("output kept: %q, %v", text, err)
			}
		})
	}
}

func TestEndlessCommandIsStoppedWithAllItStarted(t *testing.T) {
	t.Parallel()
	// A child in the group, one in a session of its own, and one that ignores
	// TERM: all must be gone.
	script := `
		sleep 1000 & echo pid $!
		setsid sleep 1000 & echo pid $!
		sh -c 'trap "" TERM; sleep 1000' & echo pid $!
		echo speed 12
		wait`
	c := shell(script, capture(command.Capture{Name: "speed_bps", Regex: `speed (\d+)`}), readyAt("speed"))
	p := play(t, c, 0.1)
	if p.err != nil || p.Status != results.StatusOK || p.Values["speed_bps"] != 12 {
		t.Fatalf("%v, %s, %v: %+v", p.err, p.Status, p.Values, p.actor)
	}
	checkGone(t, filepath.Join(p.dir, "w.stdout"), 3)
}

// alive tells whether a process runs; a zombie waiting for init does not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// TestImpatientStop: an interrupted run leaves nothing behind, though nobody
// waits for results.
func TestImpatientStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	go func() { // ctrl-C once everything runs
		for ctx.Err() == nil {
			if text, _ := os.ReadFile(filepath.Join(dir, "w.stdout")); strings.Count(string(text), "pid") == 2 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	c := shell("setsid sleep 1000 & echo pid $!; sh -c 'trap \"\" TERM; sleep 1000' & echo pid $!; wait")
	c.Grace = 3 * time.Second
	_, err := rehearse.Run(ctx, rehearse.Options{Binary: os.Args[0], Kind: "command", Workload: c, Dir: dir, Window: workloads.Window{End: 50}})
	if err == nil {
		t.Error("an interrupted rehearsal came to a result")
	}
	checkGone(t, filepath.Join(dir, "w.stdout"), 2)
}

// checkGone reads "pid N" lines and wants n processes, none of them alive.
func checkGone(t *testing.T, path string, n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		var pid int
		if _, err := fmt.Sscanf(line, "pid %d", &pid); err != nil {
			continue
		}
		found++
		if alive(pid) {
			t.Errorf("process %d lives on", pid)
		}
	}
	if found != n {
		t.Errorf("%d processes were started, not %d:\n%s", found, n, text)
	}
}

func TestGraceLetsAProgramEnd(t *testing.T) {
	t.Parallel()
	c := shell("sleep 0.6; echo speed 5", capture(command.Capture{Name: "speed_bps", Regex: `speed (\d+)`}))
	c.Grace = 3 * time.Second
	p := play(t, c, 0.3)
	if p.err != nil || p.Values["speed_bps"] != 5 {
		t.Fatalf("%v: %v %+v", p.err, p.Values, p.actor)
	}
}

func TestStopSignalINT(t *testing.T) {
	t.Parallel()
	c := shell(`trap 'echo speed 9; exit 1' INT; echo trapped; while :; do sleep 0.01; done`,
		capture(command.Capture{Name: "speed_bps", Regex: `speed (\d+)`}), readyAt("trapped"))
	c.StopSignal = "INT"
	if p := play(t, c, 0.1); p.err != nil || p.Values["speed_bps"] != 9 {
		t.Fatalf("%v: %v %+v", p.err, p.Values, p.actor)
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	p := play(t, shell("for i in 1 2 3; do echo rate $i; sleep 0.02; done", capture(command.Capture{Name: "rate_bps", Regex: `rate (\d+)`, Scale: 10, Select: "sum"})), 20)
	if p.err != nil || p.Values["rate_bps"] != 60 {
		t.Fatalf("%v: %v", p.err, p.Values)
	}
	var got []float64
	for i, s := range p.Samples {
		got = append(got, s.Value)
		if s.Metric != "rate_bps" || i > 0 && s.Time < p.Samples[i-1].Time {
			t.Errorf("sample %+v", s)
		}
	}
	if len(got) != 3 || got[0] != 10 || got[2] != 30 {
		t.Errorf("series %v", got)
	}
}

func TestJSONAndFiles(t *testing.T) {
	t.Parallel()
	c := shell(`echo '{"end":{"sum":{"bps":12.5,"rtt":nan}}}' > "$WIRELAB_DIR/out.json"; echo '[3,4]' >&2`,
		capture(command.Capture{Name: "goodput_bps", JSON: "$.end.sum.bps", From: "file:$WIRELAB_DIR/out.json"}),
		capture(command.Capture{Name: "rtt_s", JSON: "$.end.sum.rtt", From: "file:$WIRELAB_DIR/out.json"}),
		capture(command.Capture{Name: "third_count", JSON: "$[*]", From: "stderr", Select: "max"}))
	p := play(t, c, 20)
	if p.err != nil || p.Status != results.StatusPartial {
		t.Fatalf("%v, %s, %v", p.err, p.Status, p.Notes)
	}
	if p.Values["goodput_bps"] != 12.5 || p.Values["third_count"] != 4 {
		t.Errorf("values %v", p.Values)
	}
	if v, ok := p.Values["rtt_s"]; ok {
		t.Errorf("nan became %v", v)
	}
}

func TestFileOfAnEarlierRunIsNoData(t *testing.T) {
	t.Parallel()
	old := filepath.Join(t.TempDir(), "old.txt")
	if err := os.WriteFile(old, []byte("speed 3"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Now(), time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	p := play(t, shell("true", capture(command.Capture{Name: "speed_bps", Regex: `speed (\d+)`, From: "file:" + old})), 20)
	if p.err != nil || p.Status != results.StatusNoData {
		t.Fatalf("%v, %s, %v", p.err, p.Status, p.Values)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	c := shell(`echo "$WIRELAB_NODE_A $WIRELAB_NODE_A_IPV6 $WIRELAB_SEED $COLOUR"; echo t0 $WIRELAB_T0_NS; test -d "$WIRELAB_DIR"`,
		capture(command.Capture{Name: "t0_count", Regex: `t0 (\d+)`}))
	c.Env = map[string]string{"COLOUR": "blue"}
	p := play(t, c, 20)
	if p.err != nil || p.Values["t0_count"] <= 0 {
		t.Fatalf("%v: %v", p.err, p.Values)
	}
	text, _ := os.ReadFile(filepath.Join(p.dir, "w.stdout"))
	if !strings.HasPrefix(string(text), "127.0.0.1 ::1 7 blue\n") {
		t.Errorf("it saw %q", text)
	}
}

// actorScript speaks protocol 1 in shell.
const actorScript = `
	read spec; case "$spec" in *'"type":"spec"'*) ;; *) exit 9;; esac
	echo '{"type":"ready","endpoints":{"data":"x"}}' >&3
	read start; t0=$(echo "$start" | sed 's/.*"t0_ns":\([0-9]*\).*/\1/')
	echo "{\"type\":\"sample\",\"t_ns\":$((t0+50000000)),\"values\":{\"rtt_s\":0.25,\"other_s\":1}}" >&3
	echo "{\"type\":\"sample\",\"t_ns\":$((t0+60000000)),\"values\":{\"rtt_s\":0.75}}" >&3
	echo '{"type":"summary","flow":0,"values":{"goodput_bps":5}}' >&3
	echo '{"type":"summary","values":{"goodput_bps":10,"odd_s":NaN}}' >&3
	read stop; case "$stop" in *stop*) ;; *) exit 9;; esac
	echo '{"type":"done"}' >&3`

func TestProtocolActor(t *testing.T) {
	t.Parallel()
	c := shell(actorScript, capture(command.Capture{Name: "goodput_bps", Unit: "bit/s"}), capture(command.Capture{Name: "rtt_s", Unit: "s"}))
	c.Protocol = "actor"
	p := play(t, c, 0.3)
	if p.err != nil || p.Values["goodput_bps"] != 10 || math.Abs(p.Values["rtt_s"]-0.5) > 1e-12 {
		t.Fatalf("%v: %v %+v", p.err, p.Values, p.actor)
	}
	if p.actor.Status != results.StatusPartial {
		t.Errorf("actor %s with a NaN in its summary", p.actor.Status)
	}
	if len(p.Flows) != 1 || p.Flows[0]["goodput_bps"] != 5 {
		t.Errorf("flows %v", p.Flows)
	}
	if _, ok := p.Values["odd_s"]; ok {
		t.Error("an undeclared metric got through")
	}
}

// TestDocumentedActor runs the script that docs/actors.md shows.
func TestDocumentedActor(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/actors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, ok := strings.Cut(string(text), "```sh\n")
	script, _, _ = strings.Cut(script, "```")
	if !ok {
		t.Fatal("docs/actors.md shows no script")
	}
	c := shell(script, capture(command.Capture{Name: "goodput_bps", Unit: "bit/s"}))
	c.Protocol = "actor"
	if p := play(t, c, 0.2); p.err != nil || p.Values["goodput_bps"] != 10 || p.actor.Status != results.StatusOK {
		t.Errorf("%v: %v %+v", p.err, p.Values, p.actor)
	}
}

func TestServerReadiness(t *testing.T) {
	for _, c := range []struct {
		name, script string
		ready        command.Ready
		status       results.Status
		words        string
	}{
		{"regex", "sleep 0.05; printf 'listening on 1'; exec sleep 1000", command.Ready{Regex: `listening on \d`}, results.StatusOK, ""},
		{"never", "echo busy; exec sleep 1000", command.Ready{Regex: "listening", Timeout: 2 * time.Second}, results.StatusFailed, `not ready within 2s (no output matching "listening"): busy`},
		{"ended", "echo cannot bind >&2; exit 2", command.Ready{Regex: "listening"}, results.StatusFailed, "before it was ready (output matching \"listening\"): exit status 2, expected 0: cannot bind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := shell(c.script)
			w.Server, w.Ready = true, &c.ready
			p := play(t, w, 0.1)
			if p.actor.Status != c.status || !strings.Contains(p.actor.Error, c.words) {
				t.Errorf("%s: %s", p.actor.Status, p.actor.Error)
			}
		})
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := shell("exec sleep 1000")
	w.Server, w.Ready = true, &command.Ready{Port: l.Addr().(*net.TCPAddr).Port}
	p := play(t, w, 0.1)
	if p.actor.Status != results.StatusFailed || !strings.Contains(p.actor.Error, "is in use already") {
		t.Errorf("%s: %s", p.actor.Status, p.actor.Error)
	}
}

func TestProgramDiesWithItsActor(t *testing.T) {
	t.Parallel()
	c := shell("echo started; exec sleep 1000")
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	checked := make(chan struct{})
	go func() { // kill the actor outright once the program runs
		defer close(checked)
		for ctx.Err() == nil {
			if text, _ := os.ReadFile(filepath.Join(dir, "w.stdout")); len(text) > 0 {
				for _, pid := range workloads.Descendants(os.Getpid()) {
					if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); strings.Contains(string(line), "WIRELAB_DIR="+dir) {
						ppid := parent(pid)
						syscall.Kill(ppid, syscall.SIGKILL)
						deadline := time.Now().Add(20 * time.Second)
						for alive(pid) && time.Now().Before(deadline) {
							time.Sleep(time.Millisecond)
						}
						if alive(pid) {
							t.Errorf("program %d outlives its actor", pid)
						}
						return
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
	}()
	r, _ := rehearse.Run(ctx, rehearse.Options{Binary: os.Args[0], Kind: "command", Workload: c, Dir: dir, Window: workloads.Window{End: 30}})
	<-checked
	if s := r.Actors["w.runner"]; s.Status != results.StatusCrashed {
		t.Errorf("the killed actor is %s: %s", s.Status, s.Error)
	}
}

func parent(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	var state string
	var ppid int
	fmt.Sscan(rest, &state, &ppid)
	return ppid
}
