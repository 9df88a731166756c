package workloads

import (
	"context"
	"os"
	"sync"
	"time"
)

// usagePeriod is how often the threads' CPU times are read.
const usagePeriod = 500 * time.Millisecond

// usage finds how much CPU time a role used in the measurement window, and
// how busy its busiest thread was. A generator that used a whole core measured
// itself, not the network.
type usage struct {
	mu          sync.Mutex
	pids        []int         // watched besides this process
	first, last map[int]int64 // thread: CPU ns at the window's begin, and last seen
	begin, end  int64         // CLOCK_MONOTONIC of the readings
}

func (u *usage) watch(pid int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pids = append(u.pids, pid)
	if u.first != nil {
		u.readLocked(u.last)
	}
}

// run reads the threads at the window's edges and in between, so that a thread
// or process that ends is not forgotten.
func (u *usage) run(ctx context.Context, e *Env) {
	t0, err := e.WaitStart(ctx)
	if err != nil {
		return
	}
	begin, end := t0+seconds(e.Spec.Window.Start), t0+seconds(e.Spec.Window.End)
	if SleepUntil(ctx, begin) != nil {
		return
	}
	u.mu.Lock()
	u.first, u.last, u.begin = map[int]int64{}, map[int]int64{}, monotonicNS()
	u.readLocked(u.first)
	u.mu.Unlock()
	for next := begin; next < end; {
		next = min(next+int64(usagePeriod), end)
		if SleepUntil(ctx, next) != nil {
			return
		}
		u.mu.Lock()
		u.readLocked(u.last)
		u.mu.Unlock()
	}
}

func (u *usage) readLocked(into map[int]int64) {
	u.end = monotonicNS()
	readThreads(os.Getpid(), into)
	for _, pid := range u.pids {
		readTree(pid, into)
	}
}

// report says what was used, up to now when the window is not yet over.
func (u *usage) report(s *stream) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.first == nil {
		return
	}
	// A role that ends early is read once more; one that ends after the window
	// keeps the window's figure.
	if len(u.last) == 0 || monotonicNS()-u.end < int64(usagePeriod) {
		u.readLocked(u.last)
	}
	length := float64(u.end - u.begin)
	if length <= 0 {
		return
	}
	var sum, most int64
	for tid, ns := range u.last {
		d := ns - u.first[tid]
		sum += d
		most = max(most, d)
	}
	s.message(&message{Type: msgUsage, Values: finite(map[string]float64{
		"cpu_s": float64(sum) / 1e9, "thread_load_ratio": float64(most) / length, "length_s": length / 1e9,
	})})
}
