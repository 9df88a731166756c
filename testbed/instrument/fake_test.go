package instrument

import (
	"sync"
	"testing"
	"time"

	"wirelab/results"
)

// here is the namespace that the test itself runs in.
type here struct{}

func (here) Do(fn func() error) error { return fn() }
func (here) Path() string             { return "/proc/self/ns/net" }

var _ Namespace = here{}

// samples collects what an instrument records.
type samples struct {
	mu   sync.Mutex
	list []results.Sample
}

func (s *samples) add(v results.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, v)
}

// of returns the values of one actor's metric.
func (s *samples) of(actor, metric string) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []float64
	for _, v := range s.list {
		if v.Actor == actor && v.Metric == metric {
			out = append(out, v.Value)
		}
	}
	return out
}

// shortTarget is a target whose window opens start after now and lasts length.
func shortTarget(start, length time.Duration) (Target, *samples) {
	s := &samples{}
	return Target{
		Name: "it", T0NS: systemClock().now(), StartS: start.Seconds(), EndS: (start + length).Seconds(), Record: s.add,
	}, s
}

// poll waits until cond holds; the deadline only ends a broken test.
func poll(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// want compares one value of a result.
func want(t *testing.T, values map[string]float64, name string, expected float64) {
	t.Helper()
	got, ok := values[name]
	if !ok {
		t.Errorf("%s is missing, want %g", name, expected)
	} else if d := got - expected; d > 1e-9*max(1, expected) || d < -1e-9*max(1, expected) {
		t.Errorf("%s is %g, want %g", name, got, expected)
	}
}

// absent checks that a value is missing rather than made up.
func absent(t *testing.T, values map[string]float64, names ...string) {
	t.Helper()
	for _, name := range names {
		if v, ok := values[name]; ok {
			t.Errorf("%s is %g, want it absent", name, v)
		}
	}
}
