package instrument

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirelab/emul/attr"
	"wirelab/emul/unit"
	"wirelab/results"
)

// CoreLoad is the instrument "core_load": what every core did, and whether the
// host was left alone.
type CoreLoad struct {
	Settings
	Interval    time.Duration `hcl:"interval,optional" default:"100ms" doc:"Time between two readings of every core's counters."`
	MaxSteal    unit.Ratio    `hcl:"max_steal,optional" default:"5%" doc:"A run from which the hypervisor took more than this share of the cores' time is invalid."`
	MaxThrottle unit.Ratio    `hcl:"max_throttle,optional" default:"1%" doc:"A run that a CPU quota held up for more than this share of the time is invalid."`
	NoteWait    unit.Ratio    `hcl:"note_wait,optional" default:"75%" doc:"A process that waited for a core for more than this share of the time in which it wanted one is noted; actors that fill all cores do wait, so the run stays valid."`
	NoteOther   unit.Ratio    `hcl:"note_other,optional" default:"10%" doc:"Programs that are not of this run and use more than this share of the cores' time are noted."`
	MaxOther    unit.Ratio    `hcl:"max_other,optional" default:"100%" doc:"A run during which they use more than this share is invalid."`
}

var _ Instrument = (*CoreLoad)(nil)

func newCoreLoad() Instrument {
	return &CoreLoad{Settings: Settings{Enabled: true}, Interval: 100 * time.Millisecond, MaxSteal: 0.05, MaxThrottle: 0.01, NoteWait: 0.75, NoteOther: 0.1, MaxOther: 1}
}

// Validate implements [Instrument].
func (c *CoreLoad) Validate() []attr.Problem {
	return slices.Concat(checkInterval(c.Interval, false), checkShare("max_steal", float64(c.MaxSteal)),
		checkShare("max_throttle", float64(c.MaxThrottle)), checkShare("note_wait", float64(c.NoteWait)),
		checkShare("note_other", float64(c.NoteOther)), checkShare("max_other", float64(c.MaxOther)))
}

// Needs implements [Instrument].
func (c *CoreLoad) Needs() (nodes, links []string) { return nil, nil }

// Metrics implements [Instrument]; it lists the cores of this host.
func (c *CoreLoad) Metrics() []results.MetricDef {
	if !c.Enabled {
		return nil
	}
	const source = "/proc/stat (proc_stat(5))"
	defs := []results.MetricDef{
		{Name: "load_mean_ratio", Unit: "1", Definition: "Share of the window in which a core worked for this host (user, nice, system, irq, softirq), mean of all cores.", Source: source},
		{Name: "load_max_ratio", Unit: "1", Definition: "The same, of the busiest core.", Source: source},
	}
	for i, name := range cpuMetrics {
		column := strings.TrimSuffix(cpuMetrics[i], "_ratio")
		defs = append(defs, results.MetricDef{Name: name, Unit: "1", Definition: "Share of the window that the cores spent in " + column + ", mean of all cores.", Source: source})
	}
	defs = append(defs,
		results.MetricDef{Name: "other_load_ratio", Unit: "1", Definition: "Share of the window that the cores spent on programs that are not of this run, mean of all cores: user, nice and system time less that of the actors, the forwarding process and wirelab, their children included.", Source: "/proc/stat and /proc/PID/stat (proc(5))"},
		results.MetricDef{Name: "throttled_ratio", Unit: "1", Definition: "Share of the window in which a CPU quota held this process's control group up.", Source: "cgroup v2 cpu.stat"},
		results.MetricDef{Name: "run_queue_wait_max_ratio", Unit: "1", Definition: "Time that the threads of a process waited for a core over the time that they ran or waited; the largest of the observed processes.", Source: "/proc/PID/task/TID/schedstat"})
	r, err := openCPU("/proc/stat")
	if err != nil {
		return defs
	}
	defer func() { _ = r.file.Close() }()
	if r.read() != nil {
		return defs
	}
	for _, id := range r.ids {
		defs = append(defs,
			results.MetricDef{Name: perCore(id, "load_ratio"), Unit: "1", Definition: fmt.Sprintf("Share of the window in which core %d worked for this host.", id), Source: source},
			results.MetricDef{Name: perCore(id, "softirq_ratio"), Unit: "1", Definition: fmt.Sprintf("Share of the window that core %d spent in softirq.", id), Source: source},
			results.MetricDef{Name: perCore(id, "steal_ratio"), Unit: "1", Definition: fmt.Sprintf("Share of the window that the hypervisor took from core %d.", id), Source: source})
	}
	return defs
}

func perCore(id int, metric string) string { return "cpu" + strconv.Itoa(id) + "_" + metric }

// coreLoad is a started CoreLoad.
type coreLoad struct {
	config CoreLoad
	target Target
	reader *cpuReader
	loop   *loop

	prev, first, last map[int]cpuTicks
	sched             [2]map[int]map[int]schedTimes // by pid, at the edges
	ours              [2]uint64                     // CPU time of this run's processes, ticks
	throttle          [2]uint64
	throttleKnown     bool
	loadBefore        string
}

// Start implements [Instrument].
func (c *CoreLoad) Start(ctx context.Context, t Target) (Running, error) {
	if !c.Enabled {
		return nothing{}, nil
	}
	r, err := openCPU("/proc/stat")
	if err != nil {
		return nil, fmt.Errorf("measure core load: %w", err)
	}
	m := &coreLoad{config: *c, target: t, reader: r, prev: map[int]cpuTicks{}, loadBefore: loadAverage()}
	m.loop = newLoop(&m.target, c.Interval, m.step)
	m.loop.begin(ctx)
	return m, nil
}

// step makes one reading of all cores.
func (m *coreLoad) step(now int64, e edge) error {
	if err := m.reader.read(); err != nil {
		return err
	}
	for i, id := range m.reader.ids {
		cur := m.reader.now[i]
		if before, ok := m.prev[id]; ok {
			m.recordCore(now, id, cur, before)
		}
		m.prev[id] = cur
	}
	switch e {
	case edgeStart:
		m.first = m.snapshot()
		m.processes(0)
		m.throttle[0], m.throttleKnown = throttled()
	case edgeEnd:
		m.last = m.snapshot()
		m.processes(1)
		m.throttle[1], _ = throttled()
	}
	return nil
}

func (m *coreLoad) recordCore(now int64, id int, cur, before cpuTicks) {
	s, ok := cur.shares(before)
	if !ok {
		return
	}
	actor := "host.cpu" + strconv.Itoa(id)
	m.target.record(now, actor, -1, "load_ratio", busy(s))
	for i, name := range cpuMetrics {
		m.target.record(now, actor, -1, name, s[i])
	}
}

func (m *coreLoad) snapshot() map[int]cpuTicks {
	out := make(map[int]cpuTicks, len(m.reader.ids))
	for i, id := range m.reader.ids {
		out[id] = m.reader.now[i]
	}
	return out
}

// processes reads what this run's processes have used so far.
func (m *coreLoad) processes(edge int) {
	all := readProcesses()
	roots := []int{os.Getpid()}
	m.sched[edge] = make(map[int]map[int]schedTimes, len(m.target.Processes))
	for _, p := range m.target.Processes {
		roots = append(roots, p.PID)
		m.sched[edge][p.PID] = readSched(all.below(p.PID))
	}
	m.ours[edge] = all.ticksOf(all.below(roots...))
}

// Stop implements [Running].
func (m *coreLoad) Stop() (Result, error) {
	err := m.loop.finish()
	_ = m.reader.file.Close() // only ever read
	r := Result{Values: map[string]float64{}, CPUSeconds: m.loop.cpuSeconds()}
	if err != nil {
		return r, fmt.Errorf("measure core load: %w", err)
	}
	m.coreValues(&r)
	m.waitValues(&r)
	if w := m.loop.window(); m.throttleKnown && w > 0 {
		share := diff(m.throttle[0], m.throttle[1]) / 1e6 / w
		r.Values["throttled_ratio"] = share
		if share > float64(m.config.MaxThrottle) {
			r.Invalid = append(r.Invalid, fmt.Sprintf("host was contended: a CPU quota held the run up for %.1f %% of the time (max_throttle is %s)", share*100, m.config.MaxThrottle))
		}
	}
	r.Records = []results.Record{{Actor: m.target.Name, Role: "host", Flow: -1, Text: map[string]string{
		"load_average_before": m.loadBefore, "load_average_after": loadAverage(),
	}}}
	return r, nil
}

// coreValues sums up the cores that were there at both edges.
func (m *coreLoad) coreValues(r *Result) {
	var sum [cpuColumns]float64
	var loads []float64
	var programs, all float64 // ticks
	for id, end := range m.last {
		start, ok := m.first[id]
		if !ok {
			continue
		}
		s, ok := end.shares(start)
		if !ok {
			continue
		}
		for i := range s {
			sum[i] += s[i]
			all += diff(start[i], end[i])
		}
		programs += diff(start[cpuUser], end[cpuUser]) + diff(start[cpuNice], end[cpuNice]) + diff(start[cpuSystem], end[cpuSystem])
		loads = append(loads, busy(s))
		r.Values[perCore(id, "load_ratio")] = busy(s)
		r.Values[perCore(id, "softirq_ratio")] = s[cpuSoftIRQ]
		r.Values[perCore(id, "steal_ratio")] = s[cpuSteal]
	}
	if len(loads) == 0 {
		return
	}
	n := float64(len(loads))
	var total float64
	for _, l := range loads {
		total += l
	}
	r.Values["load_mean_ratio"] = total / n
	r.Values["load_max_ratio"] = slices.Max(loads)
	for i, name := range cpuMetrics {
		r.Values[name] = sum[i] / n
	}
	m.otherValues(r, programs, all)
	if steal := sum[cpuSteal] / n; steal > float64(m.config.MaxSteal) {
		r.Invalid = append(r.Invalid, fmt.Sprintf("host was contended: steal took %.1f %% of the cores' time (max_steal is %s)", steal*100, m.config.MaxSteal))
	}
}

// otherValues judges what programs that are not of this run have used.
func (m *coreLoad) otherValues(r *Result, programs, all float64) {
	share := max(0, programs-diff(m.ours[0], m.ours[1])) / all
	r.Values["other_load_ratio"] = share
	text := fmt.Sprintf("other programs used %.0f %% of the cores' time", share*100)
	switch {
	case share > float64(m.config.MaxOther):
		r.Invalid = append(r.Invalid, fmt.Sprintf("host was contended: %s (max_other is %s)", text, m.config.MaxOther))
	case share > float64(m.config.NoteOther):
		r.Notes = append(r.Notes, text)
	}
}

// waitValues judges how long the observed processes waited for a core. A
// process that hardly wanted one (under 1 % of the window) is not judged.
func (m *coreLoad) waitValues(r *Result) {
	least := m.loop.window() * 0.01 * 1e9
	worst, known := 0.0, false
	for _, p := range m.target.Processes {
		d := schedDelta(m.sched[0][p.PID], m.sched[1][p.PID])
		wanted := float64(d.run + d.wait)
		if wanted == 0 || wanted < least {
			continue
		}
		share := float64(d.wait) / wanted
		worst, known = max(worst, share), true
		if share > float64(m.config.NoteWait) {
			r.Notes = append(r.Notes, fmt.Sprintf("%s waited for a core for %.0f %% of the time it wanted one (%.2f s)", p.Name, share*100, float64(d.wait)/1e9))
		}
	}
	if known {
		r.Values["run_queue_wait_max_ratio"] = worst
	}
}

// loadAverage is /proc/loadavg, empty where there is none.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
