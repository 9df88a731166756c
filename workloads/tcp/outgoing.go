package tcp

import (
	"math"
	"net"
	"sync"
	"syscall"

	"wirelab/workloads"
)

// outgoing is a flow as the sender's kernel sees it.
type outgoing struct {
	number  int32
	beganNS int64

	mu      sync.Mutex // guards what follows: the sampler reads, the flow closes
	closed  bool
	endedNS int64
	outside bool // it ended before the window or began after it
	base    info // at the window's begin; zero for a flow that began later
	last    info // at the window's end or the flow's, whichever came first
	fixed   bool // last is of the window's end
	rtts    []uint32
	cwnd    mean

	raw  syscall.RawConn // nil once closed
	buf  *[infoSize]byte
	now  info
	err  error
	read func(fd uintptr) // reads into now and err; made once: a closure per reading would allocate
}

// mean accumulates a mean and a maximum.
type mean struct {
	sum, max float64
	n        int
}

func (m *mean) add(v float64) {
	m.sum += v
	m.max = max(m.max, v)
	m.n++
}

func newOutgoing(number int32, conn *net.TCPConn, now int64) (*outgoing, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	o := &outgoing{number: number, beganNS: now, raw: raw, buf: new([infoSize]byte)}
	o.read = func(fd uintptr) { o.now, o.err = readInfo(fd, o.buf) }
	return o, nil
}

// refreshLocked reads TCP_INFO into o.now; o.mu is held.
func (o *outgoing) refreshLocked() bool {
	return !o.closed && o.raw.Control(o.read) == nil && o.err == nil
}

// sample reads the flow; inside the window the reading counts.
func (o *outgoing) sample(inside bool) (info, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.refreshLocked() {
		return info{}, false
	}
	if inside {
		o.countLocked()
	}
	return o.now, true
}

// countLocked books o.now for the means and quantiles.
func (o *outgoing) countLocked() {
	if o.now.rtt > 0 {
		o.rtts = append(o.rtts, o.now.rtt)
	}
	o.cwnd.add(o.now.cwndBytes())
}

func (i *info) cwndBytes() float64 { return float64(i.cwnd) * float64(i.sndMSS) }

// edge reads the flow at the begin or end of the window. All that a flow did
// which began after the window did counts, however late the reading is.
func (o *outgoing) edge(begin bool, a workloads.Activity) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.refreshLocked() {
		return
	}
	if begin {
		if o.beganNS < a.WindowBegin {
			o.base = o.now
		}
		return
	}
	o.last, o.fixed = o.now, true
}

// close takes the last reading.
func (o *outgoing) close(now int64, a workloads.Activity) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ok := o.refreshLocked()
	o.outside = now < a.WindowBegin || o.beganNS >= a.WindowEnd && a.WindowEnd > a.WindowBegin
	if ok && !o.fixed {
		o.last = o.now
		if len(o.rtts) == 0 && !o.outside {
			o.countLocked() // too short for the sampler
		}
	}
	o.closed, o.endedNS = true, now
	o.raw, o.buf, o.read = nil, nil, nil
}

// counters are what TCP_INFO counted of a flow in the window.
type counters struct {
	retransmissions, segments     float64
	timeouts, dsacks, reorderings float64
	marks                         float64
	busyUS, rwndUS, sndbufUS      float64
	lifeNS                        float64 // of the flow within the window
	hasTimeouts                   bool
}

// counted returns the differences between the window's edges.
func (o *outgoing) counted(a workloads.Activity) counters {
	d32 := func(last, base uint32) float64 { return float64(last - base) } // they wrap
	d64 := func(last, base uint64) float64 { return float64(last - min(base, last)) }
	l, b := &o.last, &o.base
	return counters{
		retransmissions: d32(l.retransmits, b.retransmits), segments: d32(l.dataSegments, b.dataSegments),
		timeouts: float64(l.timeouts - b.timeouts), dsacks: d32(l.dsackDups, b.dsackDups),
		reorderings: d32(l.reorderings, b.reorderings), marks: d32(l.deliveredCE, b.deliveredCE),
		busyUS: d64(l.busy, b.busy), rwndUS: d64(l.rwnd, b.rwnd), sndbufUS: d64(l.sndbuf, b.sndbuf),
		lifeNS:      math.Max(0, float64(min(o.endedNS, a.WindowEnd)-max(o.beganNS, a.WindowBegin))),
		hasTimeouts: l.hasTimeouts(),
	}
}

func (c *counters) add(o counters) {
	c.retransmissions += o.retransmissions
	c.segments += o.segments
	c.timeouts += o.timeouts
	c.dsacks += o.dsacks
	c.reorderings += o.reorderings
	c.marks += o.marks
	c.busyUS += o.busyUS
	c.rwndUS += o.rwndUS
	c.sndbufUS += o.sndbufUS
	c.lifeNS += o.lifeNS
	c.hasTimeouts = c.hasTimeouts || o.hasTimeouts
}

// put stores the counters under their metrics' names.
func (c *counters) put(into map[string]float64) {
	into["retransmissions_count"] = c.retransmissions
	into["segments_sent_count"] = c.segments
	into["spurious_retransmissions_count"] = c.dsacks
	into["reorderings_count"] = c.reorderings
	into["ce_marks_count"] = c.marks
	if c.hasTimeouts {
		into["timeouts_count"] = c.timeouts
	}
	if c.segments > 0 {
		into["retransmission_ratio"] = c.retransmissions / c.segments
	}
	if c.lifeNS > 0 {
		into["busy_ratio"] = min(1, c.busyUS*1e3/c.lifeNS)
	}
	if c.busyUS > 0 {
		into["rwnd_limited_ratio"] = min(1, c.rwndUS/c.busyUS)
		into["sndbuf_limited_ratio"] = min(1, c.sndbufUS/c.busyUS)
	}
}
