package instrument

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// budget is the share of one core that sampling may use.
const budget = 0.05

// maxRows bounds the samples per second of one instrument.
const maxRows = 20_000

// edge says whether a reading opens or closes the measurement window.
type edge int

const (
	edgeNone edge = iota
	edgeStart
	edgeEnd
)

// clock is CLOCK_MONOTONIC and the CPU time of the calling thread, both in ns.
type clock struct {
	now       func() int64
	threadCPU func() int64
}

// loop calls step on a thread of its own: at T0, every interval after it, and
// at both edges of the window; the last call is the closing edge. An interval
// of 0 calls step at the edges only.
type loop struct {
	clock      clock
	t0         int64 // CLOCK_MONOTONIC, ns
	start, end int64 // of the window, same clock
	interval   time.Duration
	rows       int // samples that a step records: many stretch the interval
	step       func(now int64, e edge) error

	cancel context.CancelFunc
	done   chan struct{}

	// The following are written by the thread and may be read after done.
	err    error
	steps  int
	tick   int64   // when the next step between edges is due
	cpu    int64   // ns used by the thread
	opened int64   // when the window's first reading was made; 0 if never
	closed int64   // the same of its last
	cost   float64 // smoothed CPU time of one step, ns
}

// newLoop prepares a loop over the target's window.
func newLoop(t *Target, interval time.Duration, step func(now int64, e edge) error) *loop {
	return &loop{
		clock: systemClock(), t0: t.T0NS, interval: interval, step: step,
		start: t.T0NS + int64(t.StartS*1e9), end: t.T0NS + int64(t.EndS*1e9),
		done: make(chan struct{}),
	}
}

// begin starts the thread.
func (l *loop) begin(ctx context.Context) {
	ctx, l.cancel = context.WithCancel(ctx)
	go l.run(ctx)
}

// finish ends the thread, which makes its closing reading if the window is
// open, and returns the first error of a step.
func (l *loop) finish() error {
	l.cancel()
	<-l.done
	return l.err
}

// cpuSeconds is what the thread has used.
func (l *loop) cpuSeconds() float64 { return float64(l.cpu) / 1e9 }

// window is the time between the two edge readings in seconds; 0 if one is
// missing.
func (l *loop) window() float64 {
	if l.opened == 0 || l.closed <= l.opened {
		return 0
	}
	return float64(l.closed-l.opened) / 1e9
}

func (l *loop) run(ctx context.Context) {
	defer close(l.done)
	// The thread is ours alone, so that its CPU time is what sampling costs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := l.clock.threadCPU()
	defer func() { l.cpu = l.clock.threadCPU() - begin }()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()

	for l.closed == 0 && l.err == nil {
		now := l.clock.now()
		if due := l.due(now); due > now {
			timer.Reset(time.Duration(due - now))
			select {
			case <-timer.C:
				continue // a timer may be early by a tick: look again
			case <-ctx.Done():
				if l.opened != 0 {
					l.call(edgeEnd)
				}
				return
			}
		}
		l.call(l.edgeAt(now))
	}
}

// due is when the next step is to be made.
func (l *loop) due(now int64) int64 {
	next := l.end
	if l.opened == 0 {
		next = l.start
	}
	if l.interval == 0 {
		return next
	}
	if l.steps == 0 {
		return min(next, l.t0)
	}
	return min(next, l.tick)
}

// call makes one step and plans the next. Ticks stay on a grid from T0, so
// that a late one does not delay those after it.
func (l *loop) call(e edge) {
	now, before := l.clock.now(), l.clock.threadCPU()
	switch e {
	case edgeStart:
		l.opened = now
	case edgeEnd:
		l.closed = now
	}
	l.err = l.step(now, e)
	cost := float64(l.clock.threadCPU() - before)
	switch l.steps {
	case 0: // everything is cold: it says little of the next
	case 1:
		l.cost = cost
	default:
		l.cost += (cost - l.cost) / 8
	}
	l.steps++
	if l.interval == 0 {
		return
	}
	every := max(int64(l.interval), int64(l.cost/budget), int64(l.rows)*int64(time.Second)/maxRows)
	l.tick = l.t0 + ((now-l.t0)/every+1)*every
}

// stretch says in words by how much and why the steps were further apart than
// wanted; "" if they hardly were.
func (l *loop) stretch() string {
	mean, wanted := l.meanInterval(), l.interval.Seconds()
	if wanted == 0 || mean < 1.5*wanted {
		return ""
	}
	why := "because the host was busy"
	switch {
	case l.cost/budget > float64(l.interval):
		why = fmt.Sprintf("to use no more than %.0f %% of a core", budget*100)
	case l.rows > 0 && float64(l.rows)/maxRows > wanted:
		why = fmt.Sprintf("to record no more than %d values a second", maxRows)
	}
	return fmt.Sprintf("read every %.3g ms instead of %.3g ms, %s", mean*1e3, wanted*1e3, why)
}

// meanInterval is the time between steps that was kept, in seconds; 0 if
// there were fewer than two.
func (l *loop) meanInterval() float64 {
	if l.steps < 2 || l.closed <= l.t0 {
		return 0
	}
	return float64(l.closed-l.t0) / 1e9 / float64(l.steps-1)
}

// edgeAt says which edge a step at now is.
func (l *loop) edgeAt(now int64) edge {
	switch {
	case l.opened == 0 && now >= l.start:
		return edgeStart
	case l.opened != 0 && now >= l.end:
		return edgeEnd
	}
	return edgeNone
}
