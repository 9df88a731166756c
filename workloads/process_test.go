package workloads_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"wirelab/results"
	"wirelab/workloads"
)

// TestMain lets the test binary be its own actor, and its own orchestrator.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "actor" {
		os.Exit(workloads.RunActor(context.Background(), []workloads.Kind{fakeKind()}, os.Args[2], os.Args[3]))
	}
	if len(os.Args) == 3 && os.Args[1] == "orchestrate" {
		orchestrate(os.Args[2])
	}
	os.Exit(m.Run())
}

// fake is an actor made of one function.
type fake func(ctx context.Context, env *workloads.Env) error

func (f fake) Run(ctx context.Context, env *workloads.Env) error { return f(ctx, env) }

// working is a role that is ready, begins and then does something.
func working(do fake) func() workloads.Actor {
	return func() workloads.Actor {
		return fake(func(ctx context.Context, env *workloads.Env) error {
			env.Ready(map[string]string{"data": "here"})
			if _, err := env.Begin(ctx); err != nil {
				return err
			}
			return do(ctx, env)
		})
	}
}

func fakeKind() workloads.Kind {
	return workloads.Kind{Name: "fake", Actors: map[string]func() workloads.Actor{
		"good": working(func(ctx context.Context, env *workloads.Env) error {
			env.Sample(env.Now(), 2, workloads.Field{Name: "rtt_s", Value: 0.5})
			env.Summary(-1, map[string]float64{"answer_count": 42}, map[string]string{"how": "well"})
			return nil
		}),
		"partial": working(func(ctx context.Context, env *workloads.Env) error {
			env.Sample(env.Now(), -1, workloads.Field{Name: "rtt_s", Value: math.NaN()})
			env.Summary(-1, map[string]float64{"a_s": math.Inf(1), "b_s": 1}, nil)
			return nil
		}),
		"obedient": working(func(ctx context.Context, env *workloads.Env) error {
			<-ctx.Done()
			env.Summary(-1, map[string]float64{"answer_count": 1}, nil)
			return context.Cause(ctx)
		}),
		"failing": working(func(context.Context, *workloads.Env) error { return errors.New("the moon is out of reach") }),
		"unsupported": func() workloads.Actor {
			return fake(func(context.Context, *workloads.Env) error {
				return fmt.Errorf("%w: no moon", workloads.ErrUnsupported)
			})
		},
		"panicking": working(func(context.Context, *workloads.Env) error { panic("lost in space") }),
		"killed": working(func(context.Context, *workloads.Env) error {
			fmt.Fprintln(os.Stderr, "tell my wife I love her")
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}),
		"silent": working(func(context.Context, *workloads.Env) error { os.Exit(0); return nil }),
		"deaf": func() workloads.Actor {
			return fake(func(_ context.Context, env *workloads.Env) error {
				env.Ready(nil)
				for { // neither a stop message nor SIGTERM's cancelled context end it
					time.Sleep(time.Hour)
				}
			})
		},
		"busy": working(func(ctx context.Context, env *workloads.Env) error {
			for end := env.Now() + int64(600*time.Millisecond); env.Now() < end; {
			}
			return nil
		}),
		"chatty": working(func(ctx context.Context, env *workloads.Env) error {
			for i := range 200_000 {
				env.Sample(env.Now(), int32(i%1000), workloads.Field{Name: "rtt_s", Value: float64(i)}, workloads.Field{Name: "cwnd_bytes", Value: 1})
			}
			return nil
		}),
		"after": func() workloads.Actor {
			return fake(func(ctx context.Context, env *workloads.Env) error {
				env.Ready(nil)
				a, err := env.Begin(ctx)
				if err != nil {
					return err
				}
				env.Summary(-1, map[string]float64{"begin_s": float64(a.Begin-a.T0) / 1e9}, nil)
				return nil
			})
		},
		"pinned": working(func(ctx context.Context, env *workloads.Env) error {
			text, err := os.ReadFile("/proc/thread-self/status")
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(text)) {
				if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
					env.Summary(-1, nil, map[string]string{"cores": strings.TrimSpace(list)})
				}
			}
			return nil
		}),
	}}
}

type run struct {
	*workloads.Process
	mu      sync.Mutex
	samples []results.Sample
	log     string
}

func start(t *testing.T, role string, change ...func(*workloads.ProcessOptions)) *run {
	t.Helper()
	r := &run{log: filepath.Join(t.TempDir(), "log")}
	o := workloads.ProcessOptions{
		Binary: os.Args[0], LogPath: r.log, Grace: 20 * time.Second,
		Spec: workloads.Spec{Kind: "fake", Role: role, Workload: "w", Window: workloads.Window{End: 30}, StopS: 30},
		Record: func(s results.Sample) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.samples = append(r.samples, s)
		},
	}
	for _, f := range change {
		f(&o)
	}
	p, err := workloads.StartProcess(t.Context(), (*exec.Cmd).Start, o)
	if err != nil {
		t.Fatal(err)
	}
	r.Process = p
	return r
}

// waitFor fails the test when a channel does not close in time.
func waitFor(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(60 * time.Second):
		t.Fatalf("no %s within a minute", what)
	}
}

func TestActorEnds(t *testing.T) {
	for _, c := range []struct {
		role   string
		status results.Status
		words  string
	}{
		{"good", results.StatusOK, ""},
		{"partial", results.StatusPartial, ""},
		{"failing", results.StatusFailed, "the moon is out of reach"},
		{"unsupported", results.StatusUnsupported, "no moon"},
		{"panicking", results.StatusCrashed, "panic: lost in space"},
		{"killed", results.StatusCrashed, "ended by signal 9 (killed): tell my wife I love her"},
		{"silent", results.StatusFailed, `without saying "done"`},
		{"no such role", results.StatusFailed, `has no role "no such role", only after`},
	} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			p := start(t, c.role)
			endpoints, err := p.WaitReady(t.Context())
			if c.role == "unsupported" || c.role == "no such role" {
				var e *workloads.NotReadyError
				if !errors.As(err, &e) || e.Status != c.status || !strings.Contains(e.Reason, c.words) {
					t.Errorf("not ready: %v", err)
				}
			} else if err != nil || endpoints["data"] != "here" {
				t.Fatalf("ready: %v, %v", endpoints, err)
			}
			_ = p.Start(workloads.Monotonic()) // a dead one says so in its result
			waitFor(t, "end", p.Done())
			waitFor(t, "finish", p.Finished())
			r := p.Result()
			if r.Status != c.status || !strings.Contains(r.Error, c.words) {
				t.Errorf("%s: %q; want %s: %q", r.Status, r.Error, c.status, c.words)
			}
			if r.CPUSeconds <= 0 {
				t.Errorf("CPU time %v", r.CPUSeconds)
			}
		})
	}
}

func TestWhatAnActorSaysArrives(t *testing.T) {
	t.Parallel()
	p := start(t, "good")
	if _, err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	t0 := workloads.Monotonic() + int64(20*time.Millisecond)
	if err := p.Start(t0); err != nil {
		t.Fatal(err)
	}
	r := p.Result()
	if len(p.samples) != 1 {
		t.Fatalf("samples %v", p.samples)
	}
	s := p.samples[0]
	if s.Actor != "w.good" || s.Flow != 2 || s.Metric != "rtt_s" || s.Value != 0.5 || s.Time < 0 || s.Time > 60 {
		t.Errorf("sample %+v", s)
	}
	if len(r.Records) < 1 || r.Records[0].Values["answer_count"] != 42 || r.Records[0].Text["how"] != "well" || r.Records[0].Role != "good" {
		t.Errorf("records %+v", r.Records)
	}
}

func TestStopLetsAnActorSaySummary(t *testing.T) {
	t.Parallel()
	p := start(t, "obedient")
	if _, err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(workloads.Monotonic()); err != nil {
		t.Fatal(err)
	}
	p.Stop(t.Context())
	r := p.Result()
	if r.Status != results.StatusOK {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
	// It may not have begun when the stop came; then it has nothing to say.
	for _, rec := range r.Records {
		if rec.Name == "" && rec.Values["answer_count"] != 1 {
			t.Errorf("records %+v", r.Records)
		}
	}
}

func TestDeafActorIsKilled(t *testing.T) {
	t.Parallel()
	p := start(t, "deaf", func(o *workloads.ProcessOptions) { o.Grace = 50 * time.Millisecond })
	if _, err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(workloads.Monotonic()); err != nil {
		t.Fatal(err)
	}
	p.Stop(t.Context())
	waitFor(t, "end", p.Done())
	if r := p.Result(); r.Status != results.StatusFailed || !strings.Contains(r.Error, "did not end within 50ms") {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
}

func TestReadyHasADeadline(t *testing.T) {
	t.Parallel()
	p := start(t, "good", func(o *workloads.ProcessOptions) { o.Binary, o.Args = "/bin/sleep", []string{"1000"} })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := p.WaitReady(ctx)
	if err == nil || !strings.Contains(err.Error(), p.log) || !strings.Contains(err.Error(), "w.good") {
		t.Errorf("error %v names neither actor nor log", err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel() // no patience
	p.Stop(stopped)
	waitFor(t, "end", p.Done())
}

// A program that never reads its stdin cannot hold the orchestrator up, however
// much there is to tell it.
func TestDeafProgramIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	p := start(t, "good", func(o *workloads.ProcessOptions) {
		o.Binary, o.Args = "/bin/sleep", []string{"1000"}
		o.Spec.Nodes = map[string][]string{"n": {strings.Repeat("x", 4<<20)}} // more than a pipe holds
	})
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	p.Stop(stopped)
	waitFor(t, "end", p.Done())
	if r := p.Result(); r.Status != results.StatusFailed {
		t.Errorf("%s: %s", r.Status, r.Error)
	}
}

func TestGeneratorBound(t *testing.T) {
	t.Parallel()
	p := start(t, "busy", func(o *workloads.ProcessOptions) { o.Spec.Window = workloads.Window{Start: 0.1, End: 0.5} })
	if _, err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(workloads.Monotonic()); err != nil {
		t.Fatal(err)
	}
	r := p.Result()
	// On a shared host the loop may get less than a core, never more.
	if r.MaxCoreLoad < 0.05 || r.MaxCoreLoad > 1.05 || r.WindowCPUSeconds <= 0 {
		t.Errorf("a busy loop used %v of a core, %v s", r.MaxCoreLoad, r.WindowCPUSeconds)
	}
	flagged := len(r.Notes) > 0 && strings.Contains(r.Notes[0], "generator-bound: it used")
	if flagged != (r.MaxCoreLoad >= 0.95) {
		t.Errorf("load %v, notes %v", r.MaxCoreLoad, r.Notes)
	}
}

func TestManySamples(t *testing.T) {
	t.Parallel()
	p := start(t, "chatty")
	if _, err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(workloads.Monotonic()); err != nil {
		t.Fatal(err)
	}
	r := p.Result()
	if r.Status != results.StatusOK || r.Samples != 400_000 || len(p.samples) != 400_000 {
		t.Fatalf("%s: %d of 400000 values, %d recorded", r.Status, r.Samples, len(p.samples))
	}
	for i := 0; i < len(p.samples); i += 2 { // in the order they were said
		if s := p.samples[i]; s.Metric != "rtt_s" || s.Value != float64(i/2) || s.Flow != int32(i/2%1000) {
			t.Fatalf("sample %d: %+v", i, s)
		}
	}
}

func TestAfterWaitsForGo(t *testing.T) {
	t.Parallel()
	p := start(t, "after", func(o *workloads.ProcessOptions) { o.Spec.After = true })
	if _, err := p.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	t0 := workloads.Monotonic()
	if err := p.Start(t0); err != nil {
		t.Fatal(err)
	}
	if err := p.Go(t0 + int64(250*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	r := p.Result()
	if r.Status != results.StatusOK || len(r.Records) == 0 || r.Records[0].Values["begin_s"] != 0.25 {
		t.Errorf("%s: %s: %+v", r.Status, r.Error, r.Records)
	}
}

func TestPinning(t *testing.T) {
	t.Parallel()
	p := start(t, "pinned", func(o *workloads.ProcessOptions) { o.Spec.Cores = []int{0} })
	if _, err := p.WaitReady(t.Context()); err != nil {
		t.Skipf("core 0 is not ours: %v", err)
	}
	if err := p.Start(workloads.Monotonic()); err != nil {
		t.Fatal(err)
	}
	r := p.Result()
	if len(r.Records) == 0 || r.Records[0].Text["cores"] != "0" {
		t.Errorf("allowed cores: %+v", r.Records)
	}
	bad := start(t, "pinned", func(o *workloads.ProcessOptions) { o.Spec.Cores = []int{1000} })
	if _, err := bad.WaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "pin to cores [1000]") {
		t.Errorf("a core that is not there: %v", err)
	}
}

// orchestrate starts an actor, tells its process number, and waits to die.
func orchestrate(role string) {
	p, err := workloads.StartProcess(context.Background(), (*exec.Cmd).Start, workloads.ProcessOptions{
		Binary: os.Args[0], Spec: workloads.Spec{Kind: "fake", Role: role, Workload: "w", StopS: 1000, Window: workloads.Window{End: 1000}},
	})
	if err == nil {
		_, err = p.WaitReady(context.Background())
	}
	if err == nil {
		err = p.Start(workloads.Monotonic())
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID())
	select {}
}

func TestActorDoesNotOutliveTheOrchestrator(t *testing.T) {
	for _, role := range []string{"obedient", "deaf"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "orchestrate", role)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			_, err = fmt.Fscan(out, &pid)
			cmd.Process.Kill()
			cmd.Wait()
			if err != nil {
				t.Fatal(err)
			}
			deadline := time.Now().Add(60 * time.Second)
			for running(pid) {
				if time.Now().After(deadline) {
					syscall.Kill(pid, syscall.SIGKILL)
					t.Fatalf("the actor %d outlives its orchestrator", pid)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
}

// running tells whether a process runs; a zombie waiting for init does not.
func running(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
