package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/testbed/journal"
)

// killGrace is what processes are given between TERM and KILL.
const killGrace = 5 * time.Second

// process is one found in /proc; the start time tells it from a later one of
// the same number.
type process struct {
	pid   int
	start uint64
	name  string
}

func (p process) String() string { return fmt.Sprintf("%s (pid %d)", p.name, p.pid) }

// findProcesses returns the processes, other than this one, that match. Those
// that end meanwhile are not missed.
func findProcesses(match func(pid int) bool) ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []process
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The start time is read first: what matches afterwards is that
		// process, or the kill finds another start time and leaves it alone.
		start, err := journal.StartTime(pid)
		if err == nil && match(pid) {
			found = append(found, process{pid, start, processName(pid)})
		}
	}
	return found, nil
}

func processName(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return "process"
	}
	return strings.TrimSpace(string(b))
}

// hasTag reports whether the process was started with the line in its
// environment.
func hasTag(pid int, tag string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for line := range bytes.SplitSeq(b, []byte{0}) {
		if string(line) == tag {
			return true
		}
	}
	return false
}

// namespaceInode is the network namespace that a process is in, 0 if it ended.
func namespaceInode(pid int) uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/"+strconv.Itoa(pid)+"/ns/net", &st) != nil {
		return 0
	}
	return st.Ino
}

// kill ends processes: TERM, then, for those still there after the grace,
// KILL. It returns when all have ended, with an error for those that are still
// there some time after that.
func kill(ctx context.Context, list []process, grace, dying time.Duration) error {
	var open []killed
	defer func() {
		for _, k := range open {
			unix.Close(k.fd)
		}
	}()
	var errs []error
	for _, p := range list {
		fd, err := unix.PidfdOpen(p.pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("end %v: %w", p, err))
			continue
		}
		// The descriptor is of the process that has the number now.
		if start, err := journal.StartTime(p.pid); err != nil || start != p.start {
			unix.Close(fd)
			continue
		}
		open = append(open, killed{p, fd})
	}
	left := signalAll(ctx, open, unix.SIGTERM, grace)
	for _, k := range signalAll(ctx, left, unix.SIGKILL, dying) {
		errs = append(errs, fmt.Errorf("end %v: it is still there after KILL", k.process))
	}
	return errors.Join(errs...)
}

type killed struct {
	process
	fd int // pidfd
}

// signalAll signals processes and waits for them to end; it returns those that
// did not in time.
func signalAll(ctx context.Context, list []killed, sig unix.Signal, wait time.Duration) []killed {
	for _, k := range list {
		// ESRCH: it has ended, which the poll below sees.
		_ = unix.PidfdSendSignal(k.fd, sig, nil, 0)
	}
	deadline := time.Now().Add(wait)
	for len(list) > 0 {
		left := time.Until(deadline)
		if left <= 0 || ctx.Err() != nil {
			return list
		}
		fds := make([]unix.PollFd, len(list))
		for i, k := range list {
			fds[i] = unix.PollFd{Fd: int32(k.fd), Events: unix.POLLIN}
		}
		// A short timeout, so that a cancelled context is seen.
		if _, err := unix.Poll(fds, int(min(left, 100*time.Millisecond).Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return list
		}
		var rest []killed
		for i, k := range list {
			if fds[i].Revents == 0 {
				rest = append(rest, k)
			}
		}
		list = rest
	}
	return nil
}

// awaitDying waits for the owner of a run, which has given its locks up and
// cannot but end, and then for the processes that end with it: it had set them
// to be killed at its death, perhaps before the journal knew them. Closing
// packet sockets can take them seconds.
func awaitDying(ctx context.Context, owner process) error {
	if owner.pid == 0 {
		return nil // its journal was torn at the beginning: it had started nothing
	}
	deadline := time.Now().Add(dyingTime)
	for time.Now().Before(deadline) {
		list, err := findProcesses(func(pid int) bool {
			start, err := journal.StartTime(pid)
			return err == nil && (pid == owner.pid && start == owner.start || start >= owner.start && isDoomed(pid))
		})
		if err != nil || len(list) == 0 {
			return err
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// isDoomed reports whether a process is about to end: it has been sent KILL, or
// has no memory any more (proc_pid_status(5)). Kernel threads, which never
// have any, are children of process 2.
func isDoomed(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	memory, killed := false, false
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		value = strings.TrimSpace(value)
		switch key {
		case "PPid":
			if value == "2" || value == "0" {
				return false
			}
		case "VmSize":
			memory = true
		case "SigPnd", "ShdPnd":
			set, err := strconv.ParseUint(value, 16, 64)
			killed = killed || err == nil && set&(1<<(unix.SIGKILL-1)) != 0
		}
	}
	return killed || !memory
}
