package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/experiments"
	"wirelab/experiments/lang"
	"wirelab/experiments/plan"
	"wirelab/experiments/runner"
	"wirelab/results"
	"wirelab/results/store"
	"wirelab/testbed/instrument"
	"wirelab/workloads"
	"wirelab/workloads/kinds"
)

// TestMain lets the test binary be the actors and the forwarding process of
// the runs that tests make.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "actor":
			os.Exit(workloads.RunActor(context.Background(), kinds.Kinds(), os.Args[2], os.Args[3]))
		case "forward":
			if err := software.ForwardMain(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// tolerant keeps a busy machine from making a test's runs invalid.
const tolerant = `
instrument "backlog" "links" {
  max_departure_error = "0s"
}
instrument "core_load" "cores" {
  max_steal = "100%"
}
`

func needRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root to make network namespaces")
	}
}

// made is what an experiment left.
type made struct {
	exp  *experiments.Experiment
	plan *plan.Plan
	dir  *store.Dir
	runs []*results.Run
	seen *phases
	err  error
}

// file is the path of a file that a run left.
func (m *made) file(run int, name string) string {
	return filepath.Join(m.dir.RunPath(m.runs[run]), name)
}

// value is a metric of a run.
func (m *made) value(tb testing.TB, run int, metric string) float64 {
	tb.Helper()
	v, ok := m.runs[run].Lookup(metric)
	if !ok {
		tb.Fatalf("run %d has no %s: %s %s %v", run, metric, m.runs[run].Status, m.runs[run].Error, m.runs[run].Reasons)
	}
	return v.Value
}

// settings are what a test changes.
type settings struct {
	backend  emul.Backend
	kinds    lang.Kinds
	attempts int
	ctx      context.Context
	reuse    *store.Dir
}

// make makes all runs of an experiment's text.
func makeRuns(tb testing.TB, text string, change ...func(*settings)) *made {
	tb.Helper()
	needRoot(tb)
	s := settings{backend: software.New(software.Options{}), ctx: tb.Context()}
	for _, f := range change {
		f(&s)
	}
	work := tb.TempDir()
	path := filepath.Join(work, "x.hcl")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	host := instrument.HostFacts()
	exp, _, diags := lang.Load([]string{path}, lang.Options{
		Backends: []emul.Backend{s.backend}, Kinds: s.kinds, Host: lang.Host{Cores: host.Cores, Kernel: host.Kernel},
	})
	if diags.HasErrors() {
		_ = diags.WriteText(os.Stderr, 0, false)
		tb.Fatal("the text of the test is wrong")
	}
	dir, err := store.Create(work, exp.Name, store.Options{Dir: filepath.Join(work, "out")})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := dir.Close(); err != nil {
			tb.Error(err)
		}
	})
	m := &made{exp: exp, plan: plan.New(exp), dir: dir, seen: &phases{}}
	r := runner.New(exp, runner.Options{
		Binary: os.Args[0], State: filepath.Join(work, "state"), Version: "test", Store: dir, Reuse: s.reuse, Host: host,
		Progress: m.seen, Backend: s.backend, Attempts: s.attempts,
	})
	m.err = r.Run(s.ctx, m.plan, nil, func(run *results.Run) error {
		m.runs = append(m.runs, run)
		return nil
	})
	left, err := os.ReadDir(filepath.Join(work, "state"))
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		tb.Errorf("the runs left %v, %v in the folder of undo journals", left, err)
	}
	return m
}

// mustRun makes runs that all have metrics.
func mustRun(tb testing.TB, text string, change ...func(*settings)) *made {
	tb.Helper()
	m := makeRuns(tb, text, change...)
	if m.err != nil {
		tb.Fatal(m.err)
	}
	for _, r := range m.runs {
		if !r.HasMetrics() {
			tb.Fatalf("run %d: %s: %s", r.Index, r.Status, r.Error)
		}
	}
	return m
}

// phases is a progress that remembers.
type phases struct {
	mu     sync.Mutex
	names  []string
	starts int
	again  int
	done   int
}

func (p *phases) RunStarted(experiments.Point, int, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts++
}

func (p *phases) Phase(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = append(p.names, name)
}

func (p *phases) RunAgain(*results.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again++
}

func (p *phases) RunDone(*results.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
}

var _ runner.Progress = (*phases)(nil)
