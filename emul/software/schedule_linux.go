package software

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	fifoPriority = 10
	wantedNice   = -20
	wantedSlice  = 100_000 // ns, the shortest that the kernel takes
)

// schedule asks for the best timing that the calling thread may have.
// What is refused is done without.
//
// The class is SCHED_FIFO in both modes: in any other one a thread that wakes
// may have to wait for the end of the running thread's slice, some
// milliseconds, on kernels that preempt lazily. See [worker.yieldClass] for
// what keeps it from starving its core.
func schedule(core int) Scheduling {
	s := Scheduling{Core: -1}
	// Timers may otherwise be 50 us late on purpose.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if core >= 0 {
		var set unix.CPUSet
		set.Set(core)
		if unix.SchedSetaffinity(unix.Gettid(), &set) == nil {
			s.Core = core
		}
	}
	if s.FIFO = realtime(); !s.FIFO && ordinary() {
		s.Nice = wantedNice
	}
	return s
}

// realtime puts the calling thread into SCHED_FIFO.
func realtime() bool {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: fifoPriority}
	return unix.SchedSetAttr(0, &attr, 0) == nil
}

// ordinary puts the calling thread into the default class, with the highest
// weight and a short slice, which brings its turn forward (kernels from 6.12
// on; earlier ones ignore it): it wakes for a few packets and sleeps again.
func ordinary() bool {
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: wantedNice, Runtime: wantedSlice}
	return unix.SchedSetAttr(0, &attr, 0) == nil
}

// favour gives this process's scheduling group the weight of its nice value.
// With autogroup (sched(7)) a nice value counts among the tasks of one session
// only; to other sessions' load the group as a whole matters. Where there is
// no autogroup, or no privilege, nothing changes.
func favour() {
	f, err := os.OpenFile("/proc/self/autogroup", os.O_WRONLY, 0)
	if err != nil {
		return
	}
	_, _ = f.WriteString(strconv.Itoa(wantedNice))
	_ = f.Close()
}

// defaultCores are the cores of n workers: the last ones that the process may
// use, or none where there is only one.
func defaultCores(n int) []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() < 2 {
		return nil
	}
	var cores []int
	for core := len(set)*64 - 1; core >= 0 && len(cores) < n; core-- {
		if set.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores
}

// SteeringCores are the cores to which packets that arrive at the wire-side
// devices should be steered (rps_cpus): all but the workers' own, where there
// are others. A worker then spends its core on what only it can do, and
// packets of a flow keep their order.
func (b *Backend) SteeringCores() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	own := b.opt.Cores
	if len(own) == 0 {
		workers := b.opt.Workers
		if workers <= 0 {
			workers = DefaultWorkers()
		}
		own = defaultCores(workers)
	}
	var all, others []int
	for core := range len(set) * 64 {
		if !set.IsSet(core) {
			continue
		}
		all = append(all, core)
		if !slices.Contains(own, core) {
			others = append(others, core)
		}
	}
	if len(others) == 0 {
		return all
	}
	return others
}
