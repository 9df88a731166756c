package workloads

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"sync"

	"wirelab/emul/hist"
)

// ErrUnsupported marks a role that this host cannot play.
var ErrUnsupported = errors.New("not supported here")

// ErrCrashed marks a program, started by a role, that ended by a signal.
var ErrCrashed = errors.New("crashed")

// ErrStopped is the cause of an actor's context that ended by a stop message.
var ErrStopped = errors.New("stopped by the orchestrator")

// ErrOrphaned is the cause of an actor's context that ended because the
// orchestrator died: nobody reads the results any more.
var ErrOrphaned = errors.New("the orchestrator is gone")

// Env is what an actor is given: its specification, the clock, random streams,
// and the way to say what it found. Its methods are safe for concurrent use.
type Env struct {
	// Spec must not be changed.
	Spec Spec

	out   *stream
	clock clock
	usage *usage

	startOnce, goOnce sync.Once
	started, gone     chan struct{} // closed when t0, goNS are set
	t0, goNS          int64

	hurryOnce sync.Once
	hurried   chan struct{}
}

func newEnv(spec Spec, out *stream) *Env {
	return &Env{
		Spec: spec, out: out, clock: newClock(), usage: &usage{},
		started: make(chan struct{}), gone: make(chan struct{}), hurried: make(chan struct{}),
	}
}

// Now returns CLOCK_MONOTONIC in nanoseconds, without a system call.
func (e *Env) Now() int64 { return e.clock.now() }

// Addr returns a node's address of an IP version, 4 or 6.
func (e *Env) Addr(node string, version int) (netip.Addr, error) {
	for _, text := range e.Spec.Nodes[node] {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return netip.Addr{}, fmt.Errorf("address of node %s: %w", node, err)
		}
		if a.Unmap().Is4() == (version == 4) {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("node %q has no IPv%d address", node, version)
}

// Rand returns a random stream of its own for a purpose: equal seeds and names
// give equal draws, whatever other streams draw.
func (e *Env) Rand(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(e.Spec.Seed, h.Sum64()))
}

// Ready tells the orchestrator that the role is set up; a server names the
// endpoints that its clients find in their Spec.
func (e *Env) Ready(endpoints map[string]string) {
	e.out.message(&message{Type: msgReady, Endpoints: endpoints})
	e.out.flush()
}

// WaitStart returns T0 (CLOCK_MONOTONIC, ns), usually a little before it is
// reached, or the cause of ctx's end.
func (e *Env) WaitStart(ctx context.Context) (int64, error) {
	select {
	case <-e.started:
		return e.t0, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// WaitGo returns the instant (CLOCK_MONOTONIC, ns) at which the workload named
// by "after" ended.
func (e *Env) WaitGo(ctx context.Context) (int64, error) {
	select {
	case <-e.gone:
		return e.goNS, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

// Hurry is closed when nobody waits for the role's results any more: the
// orchestrator is gone, or has sent SIGTERM. What the role started must then
// end within a second.
func (e *Env) Hurry() <-chan struct{} { return e.hurried }

func (e *Env) hurry() { e.hurryOnce.Do(func() { close(e.hurried) }) }

// Activity is when a role works, on CLOCK_MONOTONIC in ns.
type Activity struct {
	T0         int64 // start of the load
	Begin, End int64 // of this role's own activity
	// WindowBegin and WindowEnd bound what metrics cover: the measurement
	// window, cut to the activity. They are equal when the two do not meet.
	WindowBegin, WindowEnd int64
}

// Begin waits for the role's turn, the start message and, with "after", the
// other workload's end, and sleeps until the activity begins.
func (e *Env) Begin(ctx context.Context) (Activity, error) {
	a, err := e.Schedule(ctx)
	if err != nil {
		return a, err
	}
	if err := SleepUntil(ctx, a.Begin); err != nil {
		return a, context.Cause(ctx)
	}
	return a, nil
}

// Schedule is Begin without the sleep: what can be prepared should be.
func (e *Env) Schedule(ctx context.Context) (Activity, error) {
	t0, err := e.WaitStart(ctx)
	if err != nil {
		return Activity{}, err
	}
	s := e.Spec
	from := t0
	if s.After {
		if from, err = e.WaitGo(ctx); err != nil {
			return Activity{}, err
		}
	}
	a := Activity{T0: t0, Begin: from + seconds(s.StartS), End: t0 + seconds(s.StopS)}
	a.WindowBegin = max(a.Begin, t0+seconds(s.Window.Start))
	a.WindowEnd = max(a.WindowBegin, min(a.End, t0+seconds(s.Window.End)))
	return a, nil
}

func seconds(s float64) int64 { return int64(s * 1e9) }

// Sample reports values of a flow (-1: of none) at an instant on
// CLOCK_MONOTONIC in ns. fields is not retained.
func (e *Env) Sample(tNS int64, flow int32, fields ...Field) {
	e.out.sample(tNS, flow, fields)
}

// Hist reports a histogram, in the unit of metric name x 1e9 (ns for _s).
func (e *Env) Hist(name string, flow int32, h *hist.Histogram) {
	e.out.message(&message{Type: msgHist, Name: name, Flow: &flow, Hist: h})
}

// Summary reports values found once, of a flow or (-1) of the role.
func (e *Env) Summary(flow int32, values map[string]float64, text map[string]string) {
	e.out.message(&message{Type: msgSummary, Flow: &flow, Values: finite(values), Text: text})
}

// Log adds a line to the role's log.
func (e *Env) Log(format string, args ...any) {
	e.out.message(&message{Type: msgLog, Message: fmt.Sprintf(format, args...)})
}

// Watch counts the CPU time of another process and its descendants as the
// role's own.
func (e *Env) Watch(pid int) { e.usage.watch(pid) }

// Relay passes on a line that another program says in protocol 1.
func (e *Env) Relay(line []byte) { e.out.line(line) }
