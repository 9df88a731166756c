package instrument

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"wirelab/emul/unit"
)

const procStat = `cpu  100 0 100 800 0 0 0 0 0 0
cpu0 50 1 40 400 5 2 3 4 7 0
cpu2 50 0 60 400 0 0 0 0 0 0
intr 12345 0 0
ctxt 99
`

func TestProcStatParses(t *testing.T) {
	r := &cpuReader{}
	if err := r.parse([]byte(procStat)); err != nil {
		t.Fatal(err)
	}
	if len(r.ids) != 2 || r.ids[1] != 2 || r.now[0] != (cpuTicks{50, 1, 40, 400, 5, 2, 3, 4}) {
		t.Fatalf("cores %v, ticks %v", r.ids, r.now)
	}
	for _, bad := range []string{"", "intr 1\n", "cpu0 1 2\n", "cpu0 1 2 3 x 5 6 7 8\n"} {
		if err := r.parse([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestSharesOfACore(t *testing.T) {
	before := cpuTicks{cpuUser: 10, cpuIdle: 100, cpuIOWait: 9}
	after := cpuTicks{cpuUser: 40, cpuSystem: 10, cpuIdle: 140, cpuIOWait: 5, cpuSoftIRQ: 10, cpuSteal: 10}
	s, ok := after.shares(before)
	if !ok || s[cpuUser] != 0.3 || s[cpuIdle] != 0.4 || s[cpuIOWait] != 0 || s[cpuSteal] != 0.1 {
		t.Fatalf("shares %v", s)
	}
	if b := busy(s); math.Abs(b-0.5) > 1e-12 {
		t.Errorf("busy %g, want 0.5", b)
	}
	if _, ok := after.shares(after); ok {
		t.Error("shares of no time")
	}
}

// startedCoreLoad is a CoreLoad that has read its edges, made up.
func startedCoreLoad(first, last map[int]cpuTicks) *coreLoad {
	return &coreLoad{config: *newCoreLoad().(*CoreLoad), first: first, last: last, loop: &loop{opened: 1, closed: 1e9 + 1}}
}

func TestCoreLoadValuesAndSteal(t *testing.T) {
	m := startedCoreLoad(
		map[int]cpuTicks{0: {}, 1: {}, 3: {}},
		map[int]cpuTicks{0: {cpuUser: 100}, 1: {cpuSystem: 50, cpuSteal: 20, cpuIdle: 30}, 2: {cpuIdle: 5}})
	r := Result{Values: map[string]float64{}}
	m.coreValues(&r)
	want(t, r.Values, "load_mean_ratio", 0.75)
	want(t, r.Values, "load_max_ratio", 1)
	want(t, r.Values, "steal_ratio", 0.1)
	want(t, r.Values, "cpu1_steal_ratio", 0.2)
	absent(t, r.Values, "cpu2_load_ratio", "cpu3_load_ratio")
	if len(r.Invalid) != 1 || !strings.Contains(r.Invalid[0], "host was contended: steal took 10.0 %") {
		t.Errorf("reasons %q", r.Invalid)
	}
	m.config.MaxSteal = 0.1
	r.Invalid = nil
	m.coreValues(&r)
	if len(r.Invalid) != 0 {
		t.Errorf("steal at the threshold makes the run invalid: %q", r.Invalid)
	}
}

func TestOtherProgramsAreNoted(t *testing.T) {
	m := startedCoreLoad(map[int]cpuTicks{0: {}}, map[int]cpuTicks{0: {cpuUser: 50, cpuSystem: 20, cpuSoftIRQ: 10, cpuIdle: 20}})
	m.ours = [2]uint64{1000, 1040}
	for _, c := range []struct {
		note, most     unit.Ratio
		notes, reasons int
	}{{0.1, 1, 1, 0}, {0.5, 1, 0, 0}, {0.1, 0.2, 0, 1}} {
		m.config.NoteOther, m.config.MaxOther = c.note, c.most
		r := Result{Values: map[string]float64{}}
		m.coreValues(&r)
		want(t, r.Values, "other_load_ratio", 0.3)
		if len(r.Notes) != c.notes || len(r.Invalid) != c.reasons {
			t.Errorf("%+v: notes %q, reasons %q", c, r.Notes, r.Invalid)
		}
	}
}

func TestProcessesAreFoundBelowTheirParents(t *testing.T) {
	p, ok := parseProcess("42 (a) b (c)) S 7 42 42 0 -1 4194304 1 2 3 4 10 20 30 40 20 0 1 0 99")
	if !ok || p != (process{parent: 7, ticks: 100}) {
		t.Errorf("process %+v, %t", p, ok)
	}
	for _, bad := range []string{"", "42 (x) S 7", "42 (x) S y 42 42 0 -1 4194304 1 2 3 4 10 20 30 40", "42 (x) S 7 42 42 0 -1 4194304 1 2 3 4 10 z 30 40"} {
		if p, ok := parseProcess(bad); ok {
			t.Errorf("%q gave %+v", bad, p)
		}
	}
	ps := processes{1: {0, 1}, 2: {1, 10}, 3: {2, 100}, 4: {1, 1000}}
	if got := ps.ticksOf(ps.below(2, 3, 99)); got != 110 {
		t.Errorf("%d ticks, want 110", got)
	}
	if got := len(ps.below(1)); got != 4 {
		t.Errorf("%d processes, want 4", got)
	}
}

func TestRunQueueWaitIsANote(t *testing.T) {
	m := startedCoreLoad(nil, nil)
	m.target.Processes = []Process{{Name: "a.sender", PID: 1}, {Name: "b.sender", PID: 2}, {Name: "c.sender", PID: 3}}
	m.sched[0] = map[int]map[int]schedTimes{1: {1: {run: 5e8, wait: 1e8}}}
	m.sched[1] = map[int]map[int]schedTimes{
		1: {1: {run: 8e8, wait: 1e8}, 9: {run: 0, wait: 12e8}},
		2: {2: {run: 9e8, wait: 1e8}},
		3: {3: {run: 1e5, wait: 9e5}}, // wanted 1 ms of 1 s: not judged
	}
	r := Result{Values: map[string]float64{}}
	m.waitValues(&r)
	want(t, r.Values, "run_queue_wait_max_ratio", 0.8)
	if len(r.Invalid) != 0 || len(r.Notes) != 1 || !strings.HasPrefix(r.Notes[0], "a.sender waited") {
		t.Errorf("notes %q, reasons %q", r.Notes, r.Invalid)
	}
}

func TestCoreLoadSeesThisHost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc/stat")
	}
	target, s := shortTarget(10*time.Millisecond, 150*time.Millisecond)
	target.Processes = []Process{{Name: "self", PID: os.Getpid()}}
	c := newCoreLoad().(*CoreLoad)
	c.Interval = 20 * time.Millisecond
	running, err := c.Start(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	busyUntil := time.Now().Add(50 * time.Millisecond)
	for time.Now().Before(busyUntil) { // give a core something to show
	}
	poll(t, "the window to close", func() bool {
		select {
		case <-running.(*coreLoad).loop.done:
			return true
		default:
			return false
		}
	})
	r, err := running.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Values["load_max_ratio"]; l <= 0 || l > 1 {
		t.Errorf("load_max_ratio is %g", l)
	}
	if len(s.of("host.cpu0", "load_ratio")) == 0 {
		t.Error("no series of core 0")
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
	if r.CPUSeconds <= 0 {
		t.Error("measuring cost nothing")
	}
}

func TestDisabledInstrumentFindsNothing(t *testing.T) {
	c := newCoreLoad().(*CoreLoad)
	c.Enabled = false
	running, err := c.Start(context.Background(), Target{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := running.Stop(); err != nil || len(r.Values) != 0 || len(c.Metrics()) != 0 {
		t.Errorf("a disabled instrument gave %v, %v", r, err)
	}
}

func TestHostFactsOfAMadeUpHost(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/cpuinfo":               "processor: 0\nmodel name: Fast CPU\nphysical id: 0\ncore id: 0\nflags: fpu hypervisor\n\nprocessor: 1\nphysical id: 0\ncore id: 0\n\nprocessor: 2\nphysical id: 1\ncore id: 0\n\nprocessor: 3\nphysical id: 1\ncore id: 0\n",
		"proc/meminfo":               "MemTotal:   2048 kB\nMemFree: 1 kB\n",
		"proc/loadavg":               "0.10 0.20 0.30 1/2 3\n",
		"etc/os-release":             "NAME=x\nPRETTY_NAME=\"Some Linux 1\"\n",
		"proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
		"sys/devices/system/cpu/vulnerabilities/meltdown":      "Not affected\n",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
		"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor": "powersave\n",
		"sys/class/dmi/id/sys_vendor":                          "QEMU\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h := hostFacts(root)
	if h.CPUModel != "Fast CPU" || h.Cores != 4 || h.Topology != "2 x 1 x 2" || h.OS != "Some Linux 1" || h.MemoryBytes != 2048<<10 {
		t.Errorf("host %+v", h)
	}
	if h.Governor != "performance, powersave" || h.Sysctls["net.ipv4.tcp_rmem"] != "4096 131072 6291456" || h.Mitigations["meltdown"] != "Not affected" {
		t.Errorf("host %+v", h)
	}
	if h.Virtual != "virtual machine (QEMU)" {
		t.Errorf("virtualization %q", h.Virtual)
	}
	if empty := hostFacts(t.TempDir()); empty.Cores < 1 || empty.CPUModel != "" {
		t.Errorf("host without facts %+v", empty)
	}
}
