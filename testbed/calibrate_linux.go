package testbed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/results"
)

// CalibrateOptions narrow what Calibrate does. The zero value measures every
// impaired link.
type CalibrateOptions struct {
	// Links to measure; nil means all that are impaired.
	Links []string
	// Attempts per link; 0 means 3. A busy host disturbs a measurement more
	// often than a link is wrong.
	Attempts int
}

// Calibrate measures, before there is any load, whether links do what was
// asked: idle probes show the RTT, and a train slightly above the asked rate
// shows the rate of every limited direction. It must run before the session is
// armed, as losses would count against the link. A link that misses its
// tolerance has OK false and the reason; the error is for measurements that
// could not be made.
func (t *Testbed) Calibrate(ctx context.Context, opt CalibrateOptions) (map[string]results.Calibration, error) {
	links := t.layout.impaired
	if opt.Links != nil {
		links = nil
		for i, l := range t.layout.Links {
			for _, name := range opt.Links {
				if l.Name == name {
					links = append(links, i)
				}
			}
		}
	}
	if opt.Attempts == 0 {
		opt.Attempts = 3
	}
	all := make(map[string]results.Calibration, len(links))
	for attempt := 1; len(links) > 0; attempt++ {
		var again []int
		for len(links) > 0 {
			n := min(len(links), calibrationGroup)
			failed, err := t.calibrateGroup(ctx, links[:n], all)
			if err != nil {
				return nil, fmt.Errorf("calibrate: %w", err)
			}
			again = append(again, failed...)
			links = links[n:]
		}
		if attempt < opt.Attempts {
			links = again
		}
	}
	return all, nil
}

const (
	// calibrationGroup is how many links are measured at the same time.
	calibrationGroup = 64
	// trainLoad bounds the packets/s that trains of several links may need
	// together, so that they do not disturb each other.
	trainLoad = 20000
)

// gauge measures one link.
type gauge struct {
	index   int // of the link in the topology
	link    Link
	mtu     int
	ends    [2]*station
	started time.Time
	result  results.Calibration
	faults  []string
}

func (g *gauge) fault(text string) {
	if text != "" {
		g.faults = append(g.faults, text)
	}
}

// calibrateGroup measures links and returns those that missed a tolerance.
func (t *Testbed) calibrateGroup(ctx context.Context, links []int, all map[string]results.Calibration) (failed []int, err error) {
	var fds []int
	defer func() { err = errors.Join(err, closeTogether(fds)) }()
	gauges := make([]*gauge, 0, len(links))
	for _, i := range links {
		g := &gauge{index: i, link: t.layout.Links[i], mtu: t.layout.mtu(i), started: time.Now()}
		for side := range 2 {
			s, err := openStation(t.hosts[t.layout.ends[i][side]].ns, t.layout.devices[i][side])
			if err != nil {
				return nil, fmt.Errorf("link %s: %w", g.link.Name, err)
			}
			g.ends[side] = s
			fds = append(fds, s.fd)
		}
		gauges = append(gauges, g)
	}
	if err := measureRTT(ctx, gauges); err != nil {
		return nil, err
	}
	if err := measureRates(ctx, gauges); err != nil {
		return nil, err
	}
	for _, g := range gauges {
		g.result.OK = len(g.faults) == 0
		if !g.result.OK {
			failed = append(failed, g.index)
			g.result.Reason = g.faults[0]
			for _, f := range g.faults[1:] {
				g.result.Reason += "; " + f
			}
		}
		g.result.DurationS = time.Since(g.started).Seconds()
		all[g.link.Name] = g.result
	}
	return failed, nil
}

func measureRTT(ctx context.Context, gauges []*gauge) error {
	var streams []*stream
	for _, g := range gauges {
		for side := range 2 {
			p := trainPlan{size: trainSmallest, burst: 1, sends: probeCount, interval: probeSpacing(g.link)}
			s := g.stream(side, p)
			s.patience = time.Second
			streams = append(streams, s)
		}
	}
	if err := run(ctx, streams); err != nil {
		return err
	}
	for i, g := range gauges {
		forward, ok := medianDelay(streams[2*i].sent, streams[2*i].arrived)
		reverse, too := medianDelay(streams[2*i+1].sent, streams[2*i+1].arrived)
		g.fault(judgeRTT(&g.result, g.link, g.mtu, forward, reverse, ok && too))
	}
	return nil
}

// measureRates sends the trains of all rate-limited directions, as many at the
// same time as do not disturb each other.
func measureRates(ctx context.Context, gauges []*gauge) error {
	var waiting []*stream
	load := 0.0
	flush := func() error {
		err := run(ctx, waiting)
		for _, s := range waiting {
			s.gauge.fault(judgeRate(&s.gauge.result, s.impairment(), s.side == 1, s.plan, rateOf(s.plan, s.impairment(), s.sent, s.arrived)))
		}
		waiting, load = nil, 0
		return err
	}
	for _, side := range []int{0, 1} {
		for _, g := range gauges {
			s := g.stream(side, trainPlan{})
			if s.impairment().Rate == 0 {
				continue
			}
			s.plan, s.patience = planTrain(s.impairment(), g.mtu), 100*time.Millisecond
			need := float64(time.Second) / float64(s.plan.interval)
			if len(waiting) > 0 && load+need > trainLoad {
				if err := flush(); err != nil {
					return err
				}
			}
			waiting, load = append(waiting, s), load+need
		}
		// The directions of a link one after the other: stations lay out one
		// kind of frame at a time.
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

// stream is a series of sends from one end of a link to the other.
type stream struct {
	gauge   *gauge
	side    int // of the sender
	plan    trainPlan
	sent    []int64 // CLOCK_REALTIME, ns
	arrived []arrival
	bytes   int // received
	next    time.Time
	// patience is how long after its time the last frame is waited for.
	patience time.Duration
}

func (g *gauge) stream(side int, p trainPlan) *stream { return &stream{gauge: g, side: side, plan: p} }

func (s *stream) impairment() emul.Impairment {
	if s.side == 0 {
		return s.gauge.link.Forward
	}
	return s.gauge.link.Reverse
}

func (s *stream) from() *station { return s.gauge.ends[s.side] }
func (s *stream) to() *station   { return s.gauge.ends[1-s.side] }

// complete reports whether all that was sent has arrived.
func (s *stream) complete() bool {
	if s.plan.burst == 1 {
		return len(s.arrived) >= len(s.sent)
	}
	return s.bytes >= s.plan.packets()*(s.plan.size-gsoHeader)
}

// run sends all streams at their pace and collects what arrives.
func run(ctx context.Context, streams []*stream) error {
	if len(streams) == 0 {
		return nil
	}
	start := time.Now()
	for i, s := range streams {
		if err := s.from().prepare(s.plan.size, s.plan.burst); err != nil {
			return err
		}
		s.sent = make([]int64, 0, s.plan.sends)
		s.arrived = make([]arrival, 0, s.plan.sends)
		// Spread, so that sends of different links do not meet.
		s.next = start.Add(s.plan.interval * time.Duration(i) / time.Duration(len(streams)))
	}
	if err := pace(ctx, streams); err != nil {
		return err
	}
	return collect(ctx, streams)
}

// spinTime is how long before a send the sender stops sleeping: a sleep ends
// up to 0.1 ms late, and a short queue forgives less.
const spinTime = 150 * time.Microsecond

// pace sends everything. It spins between the sends of fast trains: for 60 ms
// a processor is theirs.
func pace(ctx context.Context, streams []*stream) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	left := len(streams)
	for left > 0 {
		now := time.Now()
		wait := time.Second
		for i, s := range streams {
			if len(s.sent) == s.plan.sends {
				continue
			}
			if d := s.next.Sub(now); d > 0 {
				wait = min(wait, d)
				continue
			}
			seq := uint32(len(s.sent))
			s.sent = append(s.sent, time.Now().UnixNano())
			err := s.from().send(uint16(i), seq)
			if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EAGAIN) {
				return fmt.Errorf("link %s: send calibration frame: %w", s.gauge.link.Name, err)
			}
			wait = 0
			if len(s.sent) > s.plan.ahead {
				s.next = s.next.Add(s.plan.interval)
			}
			if len(s.sent) == s.plan.sends {
				left--
			}
		}
		if wait > spinTime {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			ts := unix.NsecToTimespec(int64(wait - spinTime))
			_ = unix.Nanosleep(&ts, nil) // cut short is only early
		}
	}
	return nil
}

// collect reads until everything has arrived or must be lost.
func collect(ctx context.Context, streams []*stream) error {
	deadline := time.Now()
	for _, s := range streams {
		i := s.impairment()
		late := i.Delay + 4*i.Jitter + s.patience
		if i.Rate > 0 {
			late += time.Duration(float64(s.plan.packets()) * float64(bitTime(s.plan.size, float64(i.Rate))) * (1 - 1/trainAbove))
		}
		if d := time.Now().Add(late); d.After(deadline) {
			deadline = d
		}
	}
	for {
		for _, s := range streams {
			err := s.to().receive(func(stream uint16, a arrival) {
				if int(stream) < len(streams) && streams[stream].to() == s.to() {
					to := streams[stream]
					to.arrived = append(to.arrived, a)
					to.bytes += a.bytes - gsoHeader
				}
			})
			if err != nil {
				return fmt.Errorf("link %s: %w", s.gauge.link.Name, err)
			}
		}
		var fds []unix.PollFd
		for _, s := range streams {
			if !s.complete() {
				fds = append(fds, unix.PollFd{Fd: int32(s.to().fd), Events: unix.POLLIN})
			}
		}
		left := time.Until(deadline)
		if len(fds) == 0 || left <= 0 {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// Frames that leave late show in their stamps; here only the end counts.
		if _, err := unix.Poll(fds, int(min(left, 20*time.Millisecond).Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for calibration frames: %w", err)
		}
	}
}
