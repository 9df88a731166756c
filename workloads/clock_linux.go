package workloads

import "golang.org/x/sys/unix"

func monotonicNS() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0 // cannot fail with a valid clock and address
	}
	return ts.Nano()
}

// sleepMonotonic returns at ns, or earlier when a signal arrives.
func sleepMonotonic(ns int64) {
	ts := unix.NsecToTimespec(ns)
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
}

// ThreadCPU returns the CPU time of the calling thread in ns; the caller has
// locked its goroutine to the thread.
func ThreadCPU() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0
	}
	return ts.Nano()
}

// noTimerSlack lets this thread's sleeps end on time: the default slack is
// 50 us.
func noTimerSlack() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
