package instrument

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// processes are all processes of the host at one instant.
type processes map[int]process

// process is what /proc/PID/stat says of one.
type process struct {
	parent int
	// ticks of CPU time, of the process and of the children it has waited for,
	// user and system.
	ticks uint64
}

// readProcesses reads /proc.
func readProcesses() processes {
	out := processes{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if p, ok := parseProcess(string(b)); ok && err == nil {
			out[pid] = p
		}
	}
	return out
}

// parseProcess reads the text of /proc/PID/stat.
func parseProcess(text string) (process, bool) {
	// The name, in parentheses, may itself hold spaces and parentheses.
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const parent, firstTime, lastTime = 1, 11, 14 // of the fields after the name
	if len(fields) <= lastTime {
		return process{}, false
	}
	var p process
	var err error
	if p.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return process{}, false
	}
	for _, f := range fields[firstTime : lastTime+1] {
		n, err := strconv.ParseUint(f, 10, 64)
		if err != nil {
			return process{}, false
		}
		p.ticks += n
	}
	return p, true
}

// below lists processes and their descendants, each once.
func (ps processes) below(roots ...int) []int {
	children := map[int][]int{}
	for pid, p := range ps {
		children[p.parent] = append(children[p.parent], pid)
	}
	var out []int
	seen := map[int]bool{}
	for queue := slices.Clone(roots); len(queue) > 0; queue = queue[1:] {
		pid := queue[0]
		if _, exists := ps[pid]; exists && !seen[pid] {
			seen[pid] = true
			out = append(out, pid)
			queue = append(queue, children[pid]...)
		}
	}
	return out
}

// ticksOf adds up the CPU time of processes.
func (ps processes) ticksOf(pids []int) uint64 {
	var n uint64
	for _, pid := range pids {
		n += ps[pid].ticks
	}
	return n
}

// threadsOf lists the threads of one process.
func threadsOf(pid int) []int {
	entries, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return nil // it has ended
	}
	var out []int
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, tid)
		}
	}
	return out
}

// schedTimes is the time that a thread ran and waited for a core, in ns
// (/proc/PID/task/TID/schedstat).
type schedTimes struct{ run, wait uint64 }

// readSched reads the times of every thread of processes, by thread id.
func readSched(pids []int) map[int]schedTimes {
	out := map[int]schedTimes{}
	for _, pid := range pids {
		for _, tid := range threadsOf(pid) {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
			if err != nil {
				continue
			}
			var s schedTimes
			if _, err := fmt.Sscan(string(b), &s.run, &s.wait); err == nil {
				out[tid] = s
			}
		}
	}
	return out
}

// schedDelta adds up what threads that exist at the end did since the start.
func schedDelta(start, end map[int]schedTimes) schedTimes {
	var d schedTimes
	for id, e := range end {
		s := start[id]
		d.run += uint64(diff(s.run, e.run))
		d.wait += uint64(diff(s.wait, e.wait))
	}
	return d
}
