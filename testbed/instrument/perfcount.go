package instrument

import "strconv"

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
