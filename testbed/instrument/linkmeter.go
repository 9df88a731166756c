package instrument

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wirelab/emul"
	"wirelab/emul/unit"
)

// LinkMeterOptions say how links are measured.
type LinkMeterOptions struct {
	// Interval of the series; 0 reads at the window's edges only, and then
	// there are no backlog metrics.
	Interval time.Duration
	// MaxDepartureError is the largest 99th percentile of the departure error
	// of a run that is still valid; 0 does not judge it.
	MaxDepartureError time.Duration
}

// LinkMeter measures all links of a target during one run.
type LinkMeter struct {
	target  Target
	options LinkMeterOptions
	loop    *loop
	dirs    []*linkDirection
	nodes   map[string]*netdev // of bare links, by node

	byName          map[string]int // link name in the snapshot: index in its Links
	cpu, cpuAt      [2]int64       // of the forwarder at the edges, ns
	wakeups         [2]uint64
	lastCPU, lastAt int64
}

// linkDirection is one direction of one link.
type linkDirection struct {
	link     string // as in the target
	actor    string // of samples: "net.bottleneck.forward"
	key      string // of values: "net.bottleneck", "net.bottleneck.reverse"
	rate     unit.Rate
	reverse  bool
	from, to *devCounters // of a bare link; nil if emulated

	at          int64 // of prev, ns
	prev        emul.DirectionCounters
	first, last emul.DirectionCounters
	firstAt     int64
	lastAt      int64
	backlog     []int64 // samples within the window, bytes
	logLost     uint64  // lines that the link's event log lost so far
}

var _ Running = (*LinkMeter)(nil)

// StartLinkMeter begins measuring every link of the target. Emulated links are
// read through Target.Counters, bare ones from their devices' counters.
func StartLinkMeter(ctx context.Context, t Target, o LinkMeterOptions) (*LinkMeter, error) {
	m := &LinkMeter{target: t, options: o, nodes: map[string]*netdev{}}
	for _, l := range t.Links {
		if err := m.add(l); err != nil {
			return nil, errors.Join(err, m.closeNodes())
		}
	}
	m.loop = newLoop(&m.target, o.Interval, m.step)
	m.loop.rows = 3 * len(m.dirs)
	m.loop.begin(ctx)
	return m, nil
}

func (m *LinkMeter) add(l Link) error {
	forward := &linkDirection{link: l.Name, actor: l.Name + ".forward", key: l.Name, rate: l.Forward}
	reverse := &linkDirection{link: l.Name, actor: l.Name + ".reverse", key: l.Name + ".reverse", rate: l.Reverse, reverse: true}
	m.dirs = append(m.dirs, forward, reverse)
	if l.Backend != "none" {
		if m.target.Counters == nil {
			return fmt.Errorf("link %s is emulated by %q, but there are no counters to read", l.Name, l.Backend)
		}
		return nil
	}
	ends, ok := m.target.Devices[l.Name]
	if !ok {
		return fmt.Errorf("link %s has no devices to read", l.Name)
	}
	var counters [2]*devCounters
	for i, d := range ends {
		node := m.nodes[d.Node]
		if node == nil {
			ns, ok := m.target.Nodes[d.Node]
			if !ok {
				return fmt.Errorf("link %s ends at node %s, which has no namespace", l.Name, d.Node)
			}
			var err error
			if node, err = openNetdev(ns); err != nil {
				return err
			}
			m.nodes[d.Node] = node
		}
		counters[i] = node.want(d.Name)
	}
	forward.from, forward.to = counters[0], counters[1]
	reverse.from, reverse.to = counters[1], counters[0]
	return nil
}

func (m *LinkMeter) closeNodes() error {
	var errs []error
	for _, n := range m.nodes {
		errs = append(errs, n.close())
	}
	return errors.Join(errs...)
}

// step makes one reading of all links.
func (m *LinkMeter) step(now int64, e edge) error {
	for _, n := range m.nodes {
		if err := n.read(); err != nil {
			return err
		}
	}
	var snap emul.Snapshot
	if m.target.Counters != nil && len(m.dirs) > 0 {
		var err error
		if snap, err = m.reader(e)(); err != nil {
			return fmt.Errorf("read link counters: %w", err)
		}
		m.forwarder(now, &snap, e)
	}
	for _, d := range m.dirs {
		cur, at, err := m.counters(d, &snap, now)
		if err != nil {
			return err
		}
		m.take(d, cur, at, e)
	}
	return nil
}

// reader reads the histograms at the edges only: they are most of a snapshot.
func (m *LinkMeter) reader(e edge) func() (emul.Snapshot, error) {
	if e == edgeNone && m.target.CountersLight != nil {
		return m.target.CountersLight
	}
	return m.target.Counters
}

// counters finds one direction's counters and when they were read.
func (m *LinkMeter) counters(d *linkDirection, snap *emul.Snapshot, now int64) (emul.DirectionCounters, int64, error) {
	if d.from != nil {
		if !d.from.seen || !d.to.seen {
			return emul.DirectionCounters{}, 0, fmt.Errorf("a device of link %s has disappeared", d.link)
		}
		return bareDirection(*d.from, *d.to), now, nil
	}
	i, ok := m.find(d.link, snap)
	if !ok {
		return emul.DirectionCounters{}, 0, fmt.Errorf("the emulator has no counters of link %s", d.link)
	}
	at := snap.TimeNS
	if at == 0 {
		at = now
	}
	d.logLost = snap.Links[i].EventLogLost
	if d.reverse {
		return snap.Links[i].Reverse, at, nil
	}
	return snap.Links[i].Forward, at, nil
}

// find looks a link up in a snapshot, whose names may lack the topology's.
func (m *LinkMeter) find(link string, snap *emul.Snapshot) (int, bool) {
	if len(m.byName) != len(snap.Links) {
		m.byName = make(map[string]int, len(snap.Links))
		for i, l := range snap.Links {
			m.byName[l.Name] = i
		}
	}
	if i, ok := m.byName[link]; ok {
		return i, true
	}
	_, short, _ := strings.Cut(link, ".")
	i, ok := m.byName[short]
	return i, ok
}

// take stores one reading of a direction and records its samples.
func (m *LinkMeter) take(d *linkDirection, cur emul.DirectionCounters, at int64, e edge) {
	switch e {
	case edgeStart:
		d.first, d.firstAt = cur, at
	case edgeEnd:
		d.last, d.lastAt = cur, at
	}
	if d.firstAt != 0 && m.options.Interval > 0 {
		d.backlog = append(d.backlog, cur.BacklogBytes)
	}
	if d.at != 0 && at > d.at {
		bps := diff(d.prev.BytesOut, cur.BytesOut) * 8e9 / float64(at-d.at)
		if d.rate > 0 {
			m.target.record(at, d.actor, -1, "utilization_ratio", bps/float64(d.rate))
			m.target.record(at, d.actor, -1, "backlog_bytes", float64(cur.BacklogBytes))
		} else {
			m.target.record(at, d.actor, -1, "throughput_bps", bps)
		}
		m.target.record(at, d.actor, -1, "queue_drops_count", diff(d.prev.QueueDrops, cur.QueueDrops))
	}
	d.prev, d.at = cur, at
	d.prev.DepartureError = nil
}

// forwarder follows the CPU time of the process that carries the packets.
func (m *LinkMeter) forwarder(now int64, s *emul.Snapshot, e edge) {
	if s.CPUNS == 0 {
		return
	}
	at := s.TimeNS
	if at == 0 {
		at = now
	}
	switch e {
	case edgeStart:
		m.cpu[0], m.cpuAt[0], m.wakeups[0] = s.CPUNS, at, s.Wakeups
	case edgeEnd:
		m.cpu[1], m.cpuAt[1], m.wakeups[1] = s.CPUNS, at, s.Wakeups
	}
	if m.lastAt != 0 && at > m.lastAt && m.options.Interval > 0 {
		m.target.record(at, "host.forwarder", -1, "cpu_ratio", float64(s.CPUNS-m.lastCPU)/float64(at-m.lastAt))
	}
	m.lastCPU, m.lastAt = s.CPUNS, at
}

// Stop implements [Running]. Result.Links has every link and direction; links
// that the emulation did not carry as asked are reasons in Result.Invalid.
func (m *LinkMeter) Stop() (Result, error) {
	err := errors.Join(m.loop.finish(), m.closeNodes())
	r := Result{Values: map[string]float64{}, Links: map[string]map[string]float64{}, CPUSeconds: m.loop.cpuSeconds()}
	if err != nil {
		return r, fmt.Errorf("measure links: %w", err)
	}
	for _, d := range m.dirs {
		if d.lastAt <= d.firstAt || d.firstAt == 0 {
			continue
		}
		seconds := float64(d.lastAt-d.firstAt) / 1e9
		if d.from != nil {
			r.Links[d.key] = carriedValues(d.first, d.last, seconds)
			continue
		}
		r.Links[d.key] = LinkValues(d.first, d.last, d.rate, seconds, d.backlog)
		m.judge(d, &r)
	}
	if s := m.loop.meanInterval(); s > 0 && m.options.Interval > 0 {
		r.Values["interval_mean_s"] = s
	}
	if wall := m.cpuAt[1] - m.cpuAt[0]; m.cpuAt[0] != 0 && wall > 0 {
		share := float64(m.cpu[1]-m.cpu[0]) / float64(wall)
		r.Values["forwarder_cpu_ratio"] = share
		r.Values["forwarder_wakeups_hz"] = diff(m.wakeups[0], m.wakeups[1]) / (float64(wall) / 1e9)
		if share > 0.95 {
			r.Notes = append(r.Notes, fmt.Sprintf("shaper-bound: the forwarding process used %.0f %% of a core", share*100))
		}
	}
	if s := m.loop.stretch(); s != "" {
		r.Notes = append(r.Notes, "links were "+s)
	}
	slices.Sort(r.Invalid)
	return r, nil
}

// judge says whether a direction was emulated as asked.
func (m *LinkMeter) judge(d *linkDirection, r *Result) {
	v := r.Links[d.key]
	if d.logLost > 0 && !d.reverse {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: the event log lacks %d lines that came too fast", d.link, d.logLost))
	}
	if n := v["overload_drops_count"]; n > 0 {
		r.Invalid = append(r.Invalid, fmt.Sprintf("%s: the emulator lost %.0f packets that no impairment asked for", d.actor, n))
	}
	limit := m.options.MaxDepartureError.Seconds()
	if p99 := v["departure_error_p99_s"]; limit > 0 && p99 > limit {
		r.Invalid = append(r.Invalid, fmt.Sprintf("%s: packets left %.2f ms late (99th percentile), more than %s",
			d.actor, p99*1e3, m.options.MaxDepartureError))
	} else if n := v["deadline_misses_count"]; n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %.0f packets left more than 1 ms late", d.actor, n))
	}
}
