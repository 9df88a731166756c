package instrument

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"wirelab/results"
)

func TestFindEvent(t *testing.T) {
	for name, e := range map[string]perfEvent{
		"task-clock":            {"task-clock", perfSoftware, 1},
		"cs":                    {"context-switches", perfSoftware, 3},
		"cpu-cycles":            {"cycles", perfHardware, 0},
		"L1-dcache-load-misses": {"L1-dcache-load-misses", perfCache, 0x10000},
		"LLC-stores":            {"LLC-stores", perfCache, 0x102},
		"dTLB-loads":            {"dTLB-loads", perfCache, 3},
		"r01c2":                 {"r01c2", perfRaw, 0x1c2},
	} {
		if got, ok := findEvent(name); !ok || got != e {
			t.Errorf("%s is %+v, want %+v", name, got, e)
		}
	}
	for _, name := range []string{"", "r", "rxyz", "cache-mises"} {
		if e, ok := findEvent(name); ok {
			t.Errorf("%q was found: %+v", name, e)
		}
	}
}

func TestUnknownEventSuggestsNearOnes(t *testing.T) {
	for name, near := range map[string]string{"cache-mises": "cache-misses", "context-switch": "context-switches", "l1-dcache-load": "L1-dcache-loads", "llc": "LLC"} {
		c := newPerf().(*Perf)
		c.Events = []string{name}
		problems := c.Validate()
		if len(problems) != 1 || !strings.Contains(problems[0].Detail, near) {
			t.Errorf("%s: problems %v do not name %s", name, problems, near)
		}
	}
	c := newPerf().(*Perf)
	c.Events, c.Per = []string{"cs", "context-switches", "zzzzzzzz"}, "thread"
	if problems := c.Validate(); len(problems) != 3 {
		t.Errorf("problems %v, want three", problems)
	}
	if problems := newPerf().Validate(); len(problems) != 0 {
		t.Errorf("the default has problems: %v", problems)
	}
}

// fakePerf counts in virtual time: rate events per second while it has a turn.
type fakePerf struct {
	begin  time.Time
	rate   map[string]float64
	status map[string]string  // of events that cannot be opened
	share  map[string]float64 // of the time that the group led by the event counts
	groups map[int][]string
	next   int
	opened int
}

func (f *fakePerf) open(e perfEvent, pid, cpu, group int) (int, string) {
	if s := f.status[e.name]; s != "" {
		return -1, s
	}
	if group >= 0 && len(f.groups[group]) == 3 {
		return -1, eventNotSupported // this processor counts three together
	}
	f.next++
	f.opened++
	if group < 0 {
		group = f.next
	}
	f.groups[group] = append(f.groups[group], e.name)
	return f.next, ""
}

func (f *fakePerf) read(fd int, words []uint64) bool {
	names := f.groups[fd]
	elapsed := float64(time.Since(f.begin))
	share, ok := f.share[names[0]]
	if !ok {
		share = 1
	}
	words[0], words[1], words[2] = uint64(len(names)), uint64(elapsed), uint64(elapsed*share)
	for i, n := range names {
		words[3+i] = uint64(f.rate[n] * elapsed / 1e9 * share)
	}
	return true
}

func (f *fakePerf) close(int) { f.opened-- }

func (f *fakePerf) threads(pid int) []int { return []int{pid} }

// counted runs perf on a fake over a window of 0.1 to 1.1 s of two cores.
func counted(t *testing.T, f *fakePerf, c *Perf) (Result, *samples, error) {
	t.Helper()
	f.begin, f.groups = time.Now(), map[int][]string{}
	s := &samples{}
	target := Target{Name: "cache", T0NS: time.Now().UnixNano(), StartS: 0.1, EndS: 1.1, Record: s.add,
		Processes: []Process{{Name: "a.sender", PID: 1 << 30}}}
	m, err := c.start(context.Background(), target, f, bubbleClock(0))
	if err != nil {
		return Result{}, s, err
	}
	time.Sleep(2 * time.Second)
	r, err := m.Stop()
	if f.opened != 0 {
		t.Errorf("%d descriptors were left open", f.opened)
	}
	return r, s, err
}

func status(t *testing.T, r Result, event string) results.EventStatus {
	t.Helper()
	i := slices.IndexFunc(r.Events, func(e results.EventStatus) bool { return e.Event == event })
	if i < 0 {
		t.Fatalf("no status of %s in %+v", event, r.Events)
	}
	return r.Events[i]
}

func TestPerfStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakePerf{
			rate: map[string]float64{
				"task-clock": 5e8, "cycles": 2e9, "instructions": 3e9, "cache-references": 1e6, "cache-misses": 2.5e5,
				"branches": 1e8, "branch-misses": 2e8, "LLC-loads": 1e6,
			},
			status: map[string]string{"bus-cycles": eventNotSupported, "ref-cycles": eventNotPermitted},
			share:  map[string]float64{"cache-misses": 0.5, "LLC-loads": 0.1},
		}
		c := newPerf().(*Perf)
		c.Events = []string{"task-clock", "cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "bus-cycles", "ref-cycles", "LLC-loads"}
		r, _, err := counted(t, f, c)
		if err != nil {
			t.Fatal(err)
		}
		for event, want := range map[string]string{
			"task-clock": eventOK, "cycles": eventOK, "cache-references": eventOK, "cache-misses": eventMultiplexed, "branches": eventMultiplexed,
			"branch-misses": eventImplausible, "bus-cycles": eventNotSupported, "ref-cycles": eventNotPermitted, "LLC-loads": eventMultiplexed,
		} {
			if got := status(t, r, event).Status; got != want {
				t.Errorf("%s is %s, want %s", event, got, want)
			}
		}
		if got := status(t, r, "cache-misses").RunningRatio; got < 0.499 || got > 0.501 {
			t.Errorf("cache-misses ran for %g of the time", got)
		}
		near := func(name string, expected float64) {
			if v, ok := r.Values[name]; !ok || v < expected*0.999 || v > expected*1.001 {
				t.Errorf("%s is %g, want about %g", name, v, expected)
			}
		}
		near("task_clock_s", 0.5)
		near("cycles_count", 2e9)
		near("cache_misses_count", 2.5e5) // extrapolated
		near("cache_hit_ratio", 0.75)
		near("instructions_per_cycle_ratio", 1.5)
		// Refused, contradictory, and counted for a tenth of the time only.
		absent(t, r.Values, "bus_cycles_count", "ref_cycles_count", "branch_misses_count", "branch_hit_ratio", "llc_loads_count")
		if len(r.Records) != 1 || r.Records[0].Actor != "a.sender" || r.Records[0].Values["cycles_count"] != r.Values["cycles_count"] {
			t.Errorf("records %+v", r.Records)
		}
		defined := map[string]bool{}
		for _, d := range c.Metrics() {
			defined[d.Name] = true
		}
		for name := range r.Values {
			if !defined[name] {
				t.Errorf("%s is not defined by Metrics", name)
			}
		}
		if len(r.Invalid) != 0 {
			t.Errorf("reasons %q", r.Invalid)
		}
	})
}

func TestPerfCountersThatStayAtZeroAreImplausible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPerf().(*Perf)
		c.Events = []string{"cycles", "instructions", "cache-misses"}
		r, _, err := counted(t, &fakePerf{rate: map[string]float64{}}, c)
		if err != nil {
			t.Fatal(err)
		}
		if status(t, r, "cycles").Status != eventImplausible || status(t, r, "instructions").Status != eventImplausible {
			t.Errorf("events %+v", r.Events)
		}
		want(t, r.Values, "cache_misses_count", 0) // possible
		absent(t, r.Values, "cycles_count", "instructions_per_cycle_ratio")
	})
}

func TestPerfRequired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPerf().(*Perf)
		c.Events, c.Required = []string{"task-clock", "LLC-loads"}, true
		f := &fakePerf{status: map[string]string{"LLC-loads": eventNotSupported}}
		_, _, err := counted(t, f, c)
		if !errors.Is(err, ErrRequired) || !strings.Contains(err.Error(), "LLC-loads (not_supported)") || f.opened != 0 {
			t.Errorf("error %v, %d open; want ErrRequired naming the event", err, f.opened)
		}
		f = &fakePerf{rate: map[string]float64{"LLC-loads": 5}, share: map[string]float64{"LLC-loads": 0.1}}
		r, _, err := counted(t, f, c)
		if err != nil || len(r.Invalid) != 1 || !strings.Contains(r.Invalid[0], "LLC-loads is multiplexed") {
			t.Errorf("reasons %q, error %v", r.Invalid, err)
		}
	})
}

func TestPerfSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPerf().(*Perf)
		c.Events, c.Interval = []string{"context-switches"}, 100*time.Millisecond
		_, s, err := counted(t, &fakePerf{rate: map[string]float64{"context-switches": 1000}}, c)
		if err != nil {
			t.Fatal(err)
		}
		series := s.of("cache.a.sender", "context_switches_count")
		if len(series) != 11 || series[5] != 100 {
			t.Errorf("series %v, want 11 times about 100", series)
		}
	})
}

func TestPerfCountsThisProcess(t *testing.T) {
	target, series := shortTarget(0, time.Hour)
	target.Processes = []Process{{Name: "self", PID: os.Getpid(), Kind: "command"}}
	c := newPerf().(*Perf)
	c.Events, c.Interval = append(c.Events, "LLC-loads"), time.Millisecond
	running, err := c.Start(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	run := running.(*perfRun)
	if run.failed[0] != "" {
		_, _ = running.Stop()
		t.Skipf("software events are %s here", run.failed[0])
	}
	poll(t, "the first sample", func() bool { return len(series.of("it.self", "task_clock_s")) > 0 })
	done := make(chan struct{})
	go func() { // on a thread that may not exist yet
		defer close(done)
		for until := time.Now().Add(60 * time.Millisecond); time.Now().Before(until); {
		}
	}()
	<-done
	r, err := running.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if got := status(t, r, "task-clock"); got.Status != eventOK || got.RunningRatio != 1 {
		t.Errorf("task-clock is %+v", got)
	}
	if v := r.Values["task_clock_s"]; v <= 0.001 || v > 3600 {
		t.Errorf("task_clock_s is %g", v)
	}
	if _, ok := r.Values["page_faults_count"]; !ok {
		t.Errorf("values %v", r.Values)
	}
	// Whether this machine has the processor's counters or not, the event has
	// a status, and without one that is usable there is no value.
	if s := status(t, r, "LLC-loads"); s.Status != eventOK && s.Status != eventMultiplexed {
		absent(t, r.Values, "llc_loads_count")
	}
}

func TestPerfPerCore(t *testing.T) {
	target, series := shortTarget(0, time.Hour)
	c := newPerf().(*Perf)
	c.Events, c.Per, c.Interval = []string{"cpu-clock"}, "core", time.Millisecond
	running, err := c.Start(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	if f := running.(*perfRun).failed[0]; f != "" {
		_, _ = running.Stop()
		t.Skipf("cpu-clock of a core is %s here", f)
	}
	poll(t, "a sample", func() bool { return len(series.of("it.host.cpu0", "cpu_clock_s")) > 0 })
	r, err := running.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Records) == 0 || !strings.HasPrefix(r.Records[0].Actor, "host.cpu") || r.Values["cpu_clock_s"] <= 0 {
		t.Errorf("values %v, records %+v", r.Values, r.Records)
	}
}
