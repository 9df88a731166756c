package testbed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wirelab/results"
)

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
