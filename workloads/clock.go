package workloads

import (
	"context"
	"runtime"
	"time"
)

// clock reads CLOCK_MONOTONIC through the runtime's own monotonic clock, which
// costs no system call.
type clock struct {
	base   time.Time
	baseNS int64
}

// newClock takes the tightest of a few pairs of readings, so that the two
// clocks agree within a fraction of a microsecond.
func newClock() clock {
	var best clock
	tightest := time.Duration(1 << 62)
	for range 16 {
		before := time.Now()
		ns := monotonicNS()
		if d := time.Since(before); d < tightest {
			tightest = d
			best = clock{before, ns - int64(d)/2}
		}
	}
	return best
}

func (c clock) now() int64 { return c.baseNS + int64(time.Since(c.base)) }

// Monotonic returns CLOCK_MONOTONIC in nanoseconds: the clock of T0 and of
// every time an actor reports.
func Monotonic() int64 { return monotonicNS() }

// sleepStep bounds how long a sleep goes without looking at its context.
const sleepStep = 50 * time.Millisecond

// SleepUntil sleeps until CLOCK_MONOTONIC reaches ns, or ctx ends; then it
// returns ctx's error. It blocks its thread in the kernel, where a sleep ends
// within tens of microseconds of its time, while the runtime's timers may be a
// millisecond late.
func SleepUntil(ctx context.Context, ns int64) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		now := monotonicNS()
		if now >= ns {
			return nil
		}
		if ns-now > int64(2*sleepStep) { // far away: let the runtime sleep
			t := time.NewTimer(time.Duration(ns-now) - sleepStep)
			select {
			case <-ctx.Done():
				t.Stop()
			case <-t.C:
			}
			continue
		}
		sleepMonotonic(ns)
	}
}

// PreciseThread locks the calling goroutine to its thread and asks the kernel
// to end its sleeps without slack; the returned function unlocks it.
func PreciseThread() (release func()) {
	runtime.LockOSThread()
	noTimerSlack()
	return runtime.UnlockOSThread
}
