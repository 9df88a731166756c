package software

import (
	"time"

	"golang.org/x/sys/unix"
)

// clock reads CLOCK_MONOTONIC without a system call, and turns the kernel's
// arrival stamps, which are CLOCK_REALTIME, into it.
type clock struct {
	base      time.Time
	baseNS    int64 // CLOCK_MONOTONIC at base
	offset    int64 // CLOCK_REALTIME - CLOCK_MONOTONIC
	refreshAt int64
}

const (
	refreshInterval = int64(100 * time.Millisecond)
	// maxStampAge bounds what a step of the wall clock can do.
	maxStampAge = int64(250 * time.Millisecond)
)

func newClock() clock {
	// The shortest of several readings brackets the base best.
	var c clock
	best := time.Duration(1 << 62)
	for range 20 {
		before := time.Now()
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			continue // cannot happen; the base stays the best so far
		}
		if d := time.Since(before); d < best {
			best = d
			c.base, c.baseNS = before, ts.Nano()-int64(d/2)
		}
	}
	return c
}

// now is CLOCK_MONOTONIC in nanoseconds.
func (c *clock) now() int64 { return c.baseNS + int64(time.Since(c.base)) }

// arrival turns a kernel stamp (CLOCK_REALTIME, ns; 0 if there is none) into
// CLOCK_MONOTONIC, at most now.
func (c *clock) arrival(stamp, now int64) int64 {
	if stamp == 0 {
		return now
	}
	if now >= c.refreshAt {
		t := time.Now()
		c.offset = t.UnixNano() - (c.baseNS + int64(t.Sub(c.base)))
		c.refreshAt = now + refreshInterval
	}
	return min(max(stamp-c.offset, now-maxStampAge), now)
}
