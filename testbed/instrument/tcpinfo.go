package instrument

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"wirelab/emul/attr"
	"wirelab/emul/hist"
	"wirelab/results"
)

// TCPInfo is the instrument "tcp_info": the kernel's state of every TCP flow
// of whole nodes, whoever opened it. The tcp workload follows its own flows by
// itself; this one is for programs.
type TCPInfo struct {
	Settings
	Nodes    []string      `hcl:"nodes,optional" doc:"Nodes whose flows are followed; default: those on which a workload other than tcp and ping runs."`
	Interval time.Duration `hcl:"interval,optional" default:"10ms" doc:"Time between two readings; stretched where that would cost more than 5 % of a core."`
}

var _ Instrument = (*TCPInfo)(nil)

func newTCPInfo() Instrument {
	return &TCPInfo{Settings: Settings{Enabled: true}, Interval: 10 * time.Millisecond}
}

// Validate implements [Instrument].
func (c *TCPInfo) Validate() []attr.Problem { return checkInterval(c.Interval, false) }

// Needs implements [Instrument].
func (c *TCPInfo) Needs() (nodes, links []string) { return c.Nodes, nil }

// Metrics implements [Instrument].
func (c *TCPInfo) Metrics() []results.MetricDef {
	if !c.Enabled {
		return nil
	}
	const source = "struct tcp_info by sock_diag(7)"
	return []results.MetricDef{
		{Name: "flows_count", Unit: "flows", Definition: "TCP flows seen in the window, each end for itself.", Source: source},
		{Name: "retransmissions_count", Unit: "packets", Definition: "Segments that the flows retransmitted in the window, as far as the last reading of each saw them.", Source: source + ", tcpi_total_retrans"},
		{Name: "rtt_min_s", Unit: "s", Definition: "Smallest RTT that any sending flow has measured.", Source: source + ", tcpi_min_rtt"},
		{Name: "rtt_p50_s", Unit: "s", Definition: "Median of the sampled smoothed RTT of the sending flows.", Source: source + ", tcpi_rtt; RFC 6298"},
		{Name: "rtt_p99_s", Unit: "s", Definition: "99th percentile of the sampled smoothed RTT of the sending flows.", Source: source + ", tcpi_rtt; RFC 6298"},
		{Name: "cwnd_mean_bytes", Unit: "bytes", Definition: "Mean of the sampled congestion window of the sending flows: segments times MSS.", Source: source + ", tcpi_snd_cwnd; RFC 5681"},
		{Name: "interval_mean_s", Unit: "s", Definition: "Mean time between two readings.", Source: "wirelab"},
		{Name: "cost_ratio", Unit: "1", Definition: "CPU time of the readings over the time of the load, in cores.", Source: "CLOCK_THREAD_CPUTIME_ID"},
	}
}

// nodes are those to follow in a run.
func (c *TCPInfo) nodes(t *Target) []string {
	if len(c.Nodes) > 0 {
		return c.Nodes
	}
	found := map[string]bool{}
	for _, p := range t.Processes {
		// tcp follows its own flows, and ping has none.
		if _, ok := t.Nodes[p.Node]; ok && p.Kind != "tcp" && p.Kind != "ping" {
			found[p.Node] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// tcpDump reads the flows of one node: all, or those that are known by name.
type tcpDump interface {
	dump(fn func(*tcpState)) error
	lookup(keys []tcpKey, fn func(*tcpState)) error
	close() error
}

const (
	// maxLookups is up to how many flows a node's are looked up one by one.
	maxLookups = 32
	// dumpBudget is the share of a core that dumps may use where flows are
	// few: a dump walks the kernel's socket table, which may have a quarter of
	// a million places, and lookups do not. New flows are found by dumps.
	dumpBudget = 0.01
)

// tcpNode is one node that is followed.
type tcpNode struct {
	name, actor string
	diag        tcpDump
	live        []tcpKey // at the latest reading
	spare       []tcpKey // room for the next
	dumped      int64    // when the latest dump was, CLOCK_MONOTONIC
	dumpCost    int64    // what it cost, ns
}

// tcpFlow is one flow that was seen.
type tcpFlow struct {
	node    *tcpNode
	number  int32
	last    tcpState
	base    uint64 // retransmissions before the window
	window  bool   // seen in the window
	samples uint64 // of a sender, in the window
	rtt     float64
	cwnd    float64 // sums of the samples
}

// tcpInfo is a started TCPInfo.
type tcpInfo struct {
	target Target
	loop   *loop
	nodes  []*tcpNode
	flows  map[*tcpNode]map[tcpKey]*tcpFlow
	order  []*tcpFlow
	rtt    hist.Histogram // ns
	minRTT float64
	opened bool
}

// Start implements [Instrument].
func (c *TCPInfo) Start(ctx context.Context, t Target) (Running, error) {
	if !c.Enabled {
		return nothing{}, nil
	}
	m := &tcpInfo{target: t, flows: map[*tcpNode]map[tcpKey]*tcpFlow{}}
	for _, name := range c.nodes(&t) {
		ns, ok := t.Nodes[name]
		if !ok {
			return nil, errors.Join(fmt.Errorf("follow TCP flows of %s: there is no such node", name), m.closeNodes())
		}
		d, err := openSockDiag(ns)
		if err != nil {
			return nil, errors.Join(err, m.closeNodes())
		}
		m.add(name, d)
		// A kernel built without inet_diag says so at the first dump.
		if err := d.dump(func(*tcpState) {}); err != nil {
			note := fmt.Sprintf("TCP flows were not followed: %v; the kernel needs CONFIG_INET_TCP_DIAG (module tcp_diag)", err)
			return nothing{notes: []string{note}}, m.closeNodes()
		}
	}
	if len(m.nodes) == 0 {
		return nothing{}, nil // nothing but tcp workloads
	}
	m.loop = newLoop(&m.target, c.Interval, m.step)
	m.loop.begin(ctx)
	return m, nil
}

func (m *tcpInfo) add(name string, d tcpDump) {
	n := &tcpNode{name: name, actor: m.target.Name + "." + name, diag: d}
	m.nodes = append(m.nodes, n)
	m.flows[n] = map[tcpKey]*tcpFlow{}
}

func (m *tcpInfo) closeNodes() error {
	var errs []error
	for _, n := range m.nodes {
		errs = append(errs, n.diag.close())
	}
	return errors.Join(errs...)
}

// step reads all flows of all nodes.
func (m *tcpInfo) step(now int64, e edge) error {
	if e == edgeStart {
		m.opened = true
		for _, f := range m.order {
			f.base = f.last.retransmitted
		}
	}
	rows := 0
	for _, n := range m.nodes {
		r, err := m.read(now, n, e)
		if err != nil {
			return fmt.Errorf("node %s: %w", n.name, err)
		}
		rows += r
	}
	m.loop.rows = rows
	return nil
}

// read reads the flows of one node and returns how many samples it made. At
// the edges of the window it is always a dump, so that no flow is missed.
func (m *tcpInfo) read(now int64, n *tcpNode, e edge) (rows int, err error) {
	known := n.live
	n.live, n.spare = n.spare[:0], known
	take := func(s *tcpState) {
		n.live = append(n.live, s.key)
		rows += m.take(now, n, s, e)
	}
	wait := float64(n.dumpCost) * float64(len(m.nodes)) / dumpBudget
	if e == edgeNone && n.dumped != 0 && len(known) <= maxLookups && float64(now-n.dumped) < wait {
		if len(known) == 0 {
			return 0, nil
		}
		err = n.diag.lookup(known, take)
		return rows, err
	}
	before := m.loop.clock.threadCPU()
	err = n.diag.dump(take)
	n.dumpCost, n.dumped = m.loop.clock.threadCPU()-before, now
	return rows, err
}

// take stores one reading of a flow and returns how many samples it made.
func (m *tcpInfo) take(now int64, n *tcpNode, s *tcpState, e edge) int {
	f := m.flows[n][s.key]
	if f == nil {
		f = &tcpFlow{node: n, number: int32(len(m.flows[n]))}
		m.flows[n][s.key] = f
		m.order = append(m.order, f)
	}
	f.last = *s
	if e == edgeStart {
		f.base = s.retransmitted
	}
	f.window = f.window || m.opened
	if !s.sends() {
		return 0
	}
	if m.opened {
		f.samples++
		f.rtt += s.rtt
		f.cwnd += s.cwnd
		m.rtt.Record(int64(s.rtt * 1e9))
		if s.minRTT > 0 && (m.minRTT == 0 || s.minRTT < m.minRTT) {
			m.minRTT = s.minRTT
		}
	}
	m.target.record(now, n.actor, f.number, "rtt_s", s.rtt)
	m.target.record(now, n.actor, f.number, "cwnd_bytes", s.cwnd)
	m.target.record(now, n.actor, f.number, "retransmissions_count", float64(s.retransmitted))
	if s.length < tcpInfoWithNew {
		return 3
	}
	m.target.record(now, n.actor, f.number, "delivery_rate_bps", s.delivery)
	m.target.record(now, n.actor, f.number, "acked_bytes", float64(s.acked))
	return 5
}

// Stop implements [Running].
func (m *tcpInfo) Stop() (Result, error) {
	err := errors.Join(m.loop.finish(), m.closeNodes())
	r := Result{Values: map[string]float64{}, CPUSeconds: m.loop.cpuSeconds()}
	if err != nil {
		return r, fmt.Errorf("follow TCP flows: %w", err)
	}
	if m.loop.window() == 0 {
		return r, nil
	}
	m.summarise(&r)
	if mean := m.loop.meanInterval(); mean > 0 {
		r.Values["interval_mean_s"] = mean
		r.Values["cost_ratio"] = r.CPUSeconds / (float64(m.loop.closed-m.loop.t0) / 1e9)
	}
	if s := m.loop.stretch(); s != "" {
		r.Notes = append(r.Notes, "TCP flows were "+s)
	}
	return r, nil
}

// summarise fills the values and one record per flow.
func (m *tcpInfo) summarise(r *Result) {
	var flows, retransmitted, samples, cwnd float64
	for _, f := range m.order {
		if !f.window {
			continue
		}
		v := map[string]float64{"retransmissions_count": float64(f.last.retransmitted - min(f.base, f.last.retransmitted))}
		if f.samples > 0 {
			v["rtt_mean_s"] = f.rtt / float64(f.samples)
			v["cwnd_mean_bytes"] = f.cwnd / float64(f.samples)
		}
		flows++
		retransmitted += v["retransmissions_count"]
		samples += float64(f.samples)
		cwnd += f.cwnd
		r.Records = append(r.Records, results.Record{Actor: f.node.actor, Role: "tcp_info", Flow: f.number, Values: v, Text: flowText(f.last.key)})
	}
	r.Values["flows_count"] = flows
	if flows == 0 {
		return
	}
	r.Values["retransmissions_count"] = retransmitted
	if samples > 0 {
		r.Values["rtt_p50_s"] = float64(m.rtt.Quantile(0.50)) / 1e9
		r.Values["rtt_p99_s"] = float64(m.rtt.Quantile(0.99)) / 1e9
		r.Values["cwnd_mean_bytes"] = cwnd / samples
	}
	if m.minRTT > 0 {
		r.Values["rtt_min_s"] = m.minRTT
	}
}
