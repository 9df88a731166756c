package testbed

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul"
)

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
