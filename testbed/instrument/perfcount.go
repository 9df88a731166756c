package instrument

import (
	"fmt"
	"strconv"

	"wirelab/results"
)

// perfSystem is the kernel's side of counting.
type perfSystem interface {
	// open counts an event of a thread (pid, cpu -1) or core (-1, cpu), in the
	// group of another descriptor or -1. The status is "" or the event's.
	open(e perfEvent, pid, cpu, group int) (fd int, status string)
	// read fills words with a group's nr, time enabled, time running, values.
	read(fd int, words []uint64) bool
	close(fd int)
	// threads lists the threads of a process and its descendants.
	threads(pid int) []int
}

// The statuses of an event (results.EventStatus).
const (
	eventOK           = "ok"
	eventNotSupported = "not_supported"
	eventNotPermitted = "not_permitted"
	eventMultiplexed  = "multiplexed"
	eventImplausible  = "implausible"
)

const (
	// perfGroup is how many events of the processor are counted together: few
	// enough to fit its counters, and not to need turns.
	perfGroup = 4
	// perfLeast is the share of the time an event must have been counted for
	// its extrapolated value to be given.
	perfLeast = 0.2
	// perfWhole is the share from which on an event counts as never
	// multiplexed: the edges of a group's life cost a little.
	perfWhole = 0.995
)

// perfCount is what one event counted over a time in ns.
type perfCount struct{ value, enabled, running uint64 }

// perfFD is one group of one thread or core.
type perfFD struct {
	leader  int
	members []int // descriptors, the leader first
	events  []int // indices of the run's events, same order
	first   []perfCount
	last    []perfCount
}

// perfSubject is one process or core.
type perfSubject struct {
	name   string // of samples and records
	groups []*perfFD
}

// perfRun is a started Perf.
type perfRun struct {
	config   Perf
	target   Target
	sys      perfSystem
	events   []perfEvent
	failed   []string // status of an event that could not be opened anywhere
	subjects []*perfSubject
	loop     *loop
	words    []uint64
}

// open opens all events of all subjects; what cannot be opened is a status.
func (m *perfRun) open() {
	m.failed = make([]string, len(m.events))
	opened := make([]bool, len(m.events))
	m.words = make([]uint64, 3+max(perfGroup, len(m.events)))
	if m.config.Per == "core" {
		for _, cpu := range onlineCores() {
			s := &perfSubject{name: "host.cpu" + strconv.Itoa(cpu)}
			m.openThread(s, -1, cpu, opened)
			m.subjects = append(m.subjects, s)
		}
	} else {
		for _, p := range sortedProcesses(m.target.Processes) {
			s := &perfSubject{name: p.Name}
			for _, tid := range m.sys.threads(p.PID) {
				m.openThread(s, tid, -1, opened)
			}
			m.subjects = append(m.subjects, s)
		}
	}
	for i := range m.events {
		if opened[i] {
			m.failed[i] = ""
		}
	}
}

// openThread opens the events of one thread or core: the software ones, which
// never take turns, in one group, the others in small ones.
func (m *perfRun) openThread(s *perfSubject, pid, cpu int, opened []bool) {
	var group *perfFD
	for _, software := range []bool{true, false} {
		group = nil
		for i, e := range m.events {
			if (e.kind == perfSoftware) != software {
				continue
			}
			if group != nil && !software && len(group.members) == perfGroup {
				group = nil
			}
			fd, status := m.openEvent(e, pid, cpu, &group)
			if status != "" {
				m.failed[i] = status
				continue
			}
			if fd < 0 {
				continue // the thread has ended
			}
			opened[i] = true
			if group.leader == fd {
				s.groups = append(s.groups, group)
			}
			group.members = append(group.members, fd)
			group.events = append(group.events, i)
		}
	}
}

// openEvent opens an event in the group, or where that is full or of another
// unit of the processor, as the leader of a new one.
func (m *perfRun) openEvent(e perfEvent, pid, cpu int, group **perfFD) (fd int, status string) {
	if *group != nil {
		if fd, status = m.sys.open(e, pid, cpu, (*group).leader); status == "" && fd >= 0 {
			return fd, ""
		}
	}
	fd, status = m.sys.open(e, pid, cpu, -1)
	if status == "" && fd >= 0 {
		*group = &perfFD{leader: fd}
	}
	return fd, status
}

func (m *perfRun) close() {
	for _, s := range m.subjects {
		for _, g := range s.groups {
			for _, fd := range g.members {
				m.sys.close(fd)
			}
		}
	}
}

// step reads all groups.
func (m *perfRun) step(now int64, e edge) error {
	rows := 0
	for _, s := range m.subjects {
		var grown []float64
		if m.config.Interval > 0 {
			grown = make([]float64, len(m.events))
		}
		for _, g := range s.groups {
			cur := m.read(g)
			if cur == nil {
				continue
			}
			if g.last != nil && grown != nil {
				for k, i := range g.events {
					grown[i] += diff(g.last[k].value, cur[k].value)
				}
			}
			g.last = cur
			if e == edgeStart {
				g.first = cur
			}
		}
		if grown != nil && m.loop.steps > 0 {
			rows += m.recordSubject(now, s, grown)
		}
	}
	m.loop.rows = rows
	return nil
}

// recordSubject records what each event counted since the last step.
func (m *perfRun) recordSubject(now int64, s *perfSubject, grown []float64) int {
	rows := 0
	for i, e := range m.events {
		if m.failed[i] != "" {
			continue
		}
		v := grown[i]
		if e.inSeconds() {
			v /= 1e9
		}
		m.target.record(now, m.target.Name+"."+s.name, -1, e.metric(), v)
		rows++
	}
	return rows
}

// read reads one group; nil if the kernel does not give it.
func (m *perfRun) read(g *perfFD) []perfCount {
	words := m.words[:3+len(g.members)]
	if !m.sys.read(g.leader, words) || words[0] != uint64(len(g.members)) {
		return nil
	}
	out := make([]perfCount, len(g.members))
	for i := range out {
		out[i] = perfCount{value: words[3+i], enabled: words[1], running: words[2]}
	}
	return out
}

// perfTotal is what an event counted over several groups, extrapolated where
// it took turns with others.
type perfTotal struct {
	value            float64
	enabled, running float64 // ns
	backwards        bool
}

// add takes one group's counts at both edges.
func (t *perfTotal) add(first, last perfCount) {
	if last.value < first.value || last.enabled < first.enabled || last.running < first.running {
		t.backwards = true
		return
	}
	value, enabled, running := float64(last.value-first.value), float64(last.enabled-first.enabled), float64(last.running-first.running)
	if running > 0 && running < enabled {
		value *= enabled / running
	}
	t.value += value
	t.enabled += enabled
	t.running += running
}

// ratio is the share of the time that the event was counted.
func (t *perfTotal) ratio() float64 {
	if t.enabled == 0 {
		return 1 // nothing ran, so nothing was missed
	}
	return min(1, t.running/t.enabled)
}

// totals sums the events of one subject.
func (m *perfRun) totals(s *perfSubject) []perfTotal {
	out := make([]perfTotal, len(m.events))
	for _, g := range s.groups {
		if g.first == nil || g.last == nil {
			continue
		}
		for k, i := range g.events {
			out[i].add(g.first[k], g.last[k])
		}
	}
	return out
}

// Stop implements [Running].
func (m *perfRun) Stop() (Result, error) {
	err := m.loop.finish()
	m.close()
	r := Result{Values: map[string]float64{}, CPUSeconds: m.loop.cpuSeconds()}
	if err != nil {
		return r, fmt.Errorf("count perf events: %w", err)
	}
	if len(m.subjects) == 0 {
		r.Notes = append(r.Notes, "perf had no process to observe")
		return r, nil
	}
	sum := make([]perfTotal, len(m.events))
	per := make([][]perfTotal, len(m.subjects))
	for k, s := range m.subjects {
		per[k] = m.totals(s)
		for i, t := range per[k] {
			sum[i].value += t.value
			sum[i].enabled += t.enabled
			sum[i].running += t.running
			sum[i].backwards = sum[i].backwards || t.backwards
		}
	}
	statuses := m.judge(sum)
	for i, e := range m.events {
		r.Events = append(r.Events, results.EventStatus{Instrument: m.target.Name, Event: e.name, Status: statuses[i], RunningRatio: m.runningRatio(i, sum)})
		if m.config.Required && !usable(statuses[i], sum[i]) {
			r.Invalid = append(r.Invalid, fmt.Sprintf("required perf event %s is %s", e.name, statuses[i]))
		}
	}
	if m.loop.window() == 0 {
		return r, nil
	}
	r.Values = m.values(sum, statuses)
	for k, s := range m.subjects {
		r.Records = append(r.Records, results.Record{Actor: s.name, Role: "perf", Flow: -1, Name: m.target.Name, Values: m.values(per[k], statuses)})
	}
	return r, nil
}

func (m *perfRun) runningRatio(i int, sum []perfTotal) float64 {
	if m.failed[i] != "" {
		return 0
	}
	return sum[i].ratio()
}

// values are the metrics of one subject, of the usable events only.
func (m *perfRun) values(totals []perfTotal, statuses []string) map[string]float64 {
	v := make(map[string]float64, len(totals))
	for i, e := range m.events {
		if !usable(statuses[i], totals[i]) {
			continue
		}
		v[e.metric()] = totals[i].value
		if e.inSeconds() {
			v[e.metric()] = totals[i].value / 1e9
		}
	}
	ratios(v)
	return v
}

// usable says whether an event of the status has a value.
func usable(status string, t perfTotal) bool {
	return status == eventOK || status == eventMultiplexed && t.ratio() >= perfLeast
}
