package instrument

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// bubbleClock is the clock of a synctest bubble; every reading of the thread's
// CPU time costs.
func bubbleClock(cost time.Duration) clock {
	var cpu int64
	return clock{
		now:       func() int64 { return time.Now().UnixNano() },
		threadCPU: func() int64 { cpu += int64(cost); return cpu },
	}
}

type stepAt struct {
	at time.Duration // since T0
	e  edge
}

// runLoop runs a loop in virtual time until it ends, or until stop after T0.
func runLoop(t *testing.T, interval, cost, start, end, stop time.Duration, fail error) (*loop, []stepAt, error) {
	t.Helper()
	var steps []stepAt
	t0 := time.Now().Add(200 * time.Millisecond).UnixNano()
	target := Target{T0NS: t0, StartS: start.Seconds(), EndS: end.Seconds()}
	l := newLoop(&target, interval, nil)
	l.clock = bubbleClock(cost)
	l.step = func(now int64, e edge) error {
		steps = append(steps, stepAt{time.Duration(now - t0), e})
		return fail
	}
	l.begin(context.Background())
	time.Sleep(200*time.Millisecond + stop)
	synctest.Wait()
	err := l.finish()
	return l, steps, err
}

func TestLoopReadsAtEdgesAndTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		l, steps, err := runLoop(t, 10*ms, 0, 25*ms, 50*ms, time.Second, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := []stepAt{{0, edgeNone}, {10 * ms, edgeNone}, {20 * ms, edgeNone}, {25 * ms, edgeStart}, {30 * ms, edgeNone}, {40 * ms, edgeNone}, {50 * ms, edgeEnd}}
		if len(steps) != len(want) {
			t.Fatalf("steps %v, want %v", steps, want)
		}
		for i := range want {
			if steps[i] != want[i] {
				t.Errorf("step %d is %v, want %v", i, steps[i], want[i])
			}
		}
		if got := l.window(); got != 0.025 {
			t.Errorf("window is %g s, want 0.025", got)
		}
	})
}

func TestLoopWithoutIntervalReadsEdgesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, steps, _ := runLoop(t, 0, 0, 0, time.Second, 2*time.Second, nil)
		if len(steps) != 2 || steps[0] != (stepAt{0, edgeStart}) || steps[1] != (stepAt{time.Second, edgeEnd}) {
			t.Fatalf("steps %v, want the two edges", steps)
		}
	})
}

func TestLoopStretchesWhatCostsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A step that costs 5 ms may be made every 100 ms: 5 % of a core.
		l, steps, _ := runLoop(t, 10*time.Millisecond, 5*time.Millisecond, 0, 2*time.Second, 3*time.Second, nil)
		if len(steps) < 15 || len(steps) > 25 {
			t.Fatalf("%d steps in 2 s, want about 20", len(steps))
		}
		if m := l.meanInterval(); m < 0.08 || m > 0.13 {
			t.Errorf("mean interval is %g s, want about 0.1", m)
		}
		if s := l.stretch(); !strings.Contains(s, "instead of 10 ms, to use no more than 5 %") {
			t.Errorf("stretch says %q", s)
		}
	})
}

func TestLoopStretchesWhatRecordsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := Target{T0NS: time.Now().UnixNano(), EndS: 2}
		l := newLoop(&target, 10*time.Millisecond, nil)
		steps := 0
		l.clock, l.step = bubbleClock(0), func(int64, edge) error { steps++; l.rows = 4000; return nil } // 5 readings a second
		l.begin(context.Background())
		time.Sleep(3 * time.Second)
		if err := l.finish(); err != nil || steps < 9 || steps > 13 {
			t.Errorf("%d steps in 2 s, error %v; want about 11", steps, err)
		}
		if s := l.stretch(); !strings.Contains(s, "values a second") {
			t.Errorf("stretch says %q", s)
		}
	})
}

func TestLoopClosesTheWindowWhenStoppedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, steps, _ := runLoop(t, 0, 0, 100*time.Millisecond, time.Second, 300*time.Millisecond, nil)
		if len(steps) != 2 || steps[1].e != edgeEnd {
			t.Fatalf("steps %v, want both edges", steps)
		}
		if got := l.window(); got != 0.2 {
			t.Errorf("window is %g s, want 0.2", got)
		}
	})
}

func TestLoopStoppedBeforeTheWindowFindsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, steps, err := runLoop(t, 0, 0, time.Second, 2*time.Second, time.Millisecond, nil)
		if err != nil || len(steps) != 0 || l.window() != 0 {
			t.Fatalf("steps %v, window %g, error %v; want none", steps, l.window(), err)
		}
	})
}

func TestLoopEndsAtTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		_, steps, err := runLoop(t, time.Millisecond, 0, 0, time.Second, time.Second, broken)
		if !errors.Is(err, broken) || len(steps) != 1 {
			t.Fatalf("%d steps, error %v; want one and %v", len(steps), err, broken)
		}
	})
}
