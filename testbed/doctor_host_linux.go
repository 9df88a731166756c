package testbed

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onThread runs fn on a thread that is thrown away afterwards, with whatever fn
// did to it.
func onThread(fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked
		done <- fn()
	}()
	return <-done
}

func (d *doctor) scheduling() {
	const fifo = 1 // SCHED_FIFO, sched(7)
	err := onThread(func() error {
		priority := int32(1)
		_, _, e := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, fifo, uintptr(unsafe.Pointer(&priority)))
		if e != 0 {
			return fmt.Errorf("set SCHED_FIFO: %w", e)
		}
		return nil
	})
	d.verdict("real-time scheduling", false, err, "SCHED_FIFO is allowed",
		"Links in mode \"precise\" release packets later under load. Give CAP_SYS_NICE, or real-time time to the cgroup (cpu.rt_runtime_us).")
}

// timers measures how late a sleep ends: what delays of links are made of.
func (d *doctor) timers() {
	const sleeps, length = 60, 500 * time.Microsecond
	late := make([]time.Duration, 0, sleeps)
	err := onThread(func() error {
		if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("set timer slack: %w", err)
		}
		ts := unix.NsecToTimespec(int64(length))
		for range sleeps {
			start := time.Now()
			if err := unix.Nanosleep(&ts, nil); err == nil { // else a signal cut it short
				late = append(late, time.Since(start)-length)
			}
		}
		return nil
	})
	f := Finding{Name: "timers", OK: err == nil && len(late) > 0}
	if err != nil {
		f.Detail = err.Error()
	}
	if len(late) > 0 {
		slices.Sort(late)
		p50, p99 := late[len(late)/2], late[len(late)*99/100]
		f.Detail = fmt.Sprintf("a sleep of %v ends late by %v (median), %v (99 %%)", length, p50.Round(time.Microsecond), p99.Round(time.Microsecond))
		if p50 > time.Millisecond {
			f.OK = false
			f.Remedy = "The kernel has no high-resolution timers, or the host is overloaded: delays of links will be off by as much."
		}
	}
	d.add(f)
}

// perf tries one event of each sort.
func (d *doctor) perf() {
	for _, e := range []struct {
		name    string
		typ     uint32
		config  uint64
		virtual string
	}{
		{"perf software events", unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK, ""},
		{"perf hardware events", unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES, " In a virtual machine the hypervisor must pass a PMU through."},
	} {
		attr := unix.PerfEventAttr{Type: e.typ, Config: e.config, Bits: unix.PerfBitDisabled}
		attr.Size = uint32(unsafe.Sizeof(attr))
		fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err == nil {
			unix.Close(fd)
		}
		remedy := "Its counters are reported as not supported; nothing else is missing." + e.virtual
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			remedy = "Run as root, or set kernel.perf_event_paranoid to 1 or less."
		}
		d.verdict(e.name, false, err, "opened a counter", remedy)
	}
}

func (d *doctor) congestion() {
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	have := strings.Fields(string(text))
	for _, want := range []struct{ name, remedy string }{
		{"cubic", ""}, {"reno", ""}, {"bbr", d.distro.hint("tcp_bbr")}, {"dctcp", d.distro.hint("tcp_dctcp")},
	} {
		missing := err
		if missing == nil && !slices.Contains(have, want.name) {
			missing = fmt.Errorf("not loaded; there are %s", strings.Join(have, ", "))
		}
		d.verdict("congestion control "+want.name, false, missing, "available", want.remedy)
	}
	current, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	d.verdict("default congestion control", false, err, strings.TrimSpace(string(current))+" for programs that name none; workload tcp always names one", "")
}
