package workloads

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// readThreads stores the CPU time in ns of every thread of a process, by
// thread number. A process that is gone leaves the map as it is.
func readThreads(pid int, into map[int]int64) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		// The first field of schedstat is the time on a CPU in ns.
		text, err := os.ReadFile(dir + "/" + t.Name() + "/schedstat")
		if err != nil {
			continue
		}
		first, _, _ := bytes.Cut(text, []byte(" "))
		if ns, err := strconv.ParseInt(string(first), 10, 64); err == nil {
			into[tid] = ns
		}
	}
}

// Descendants lists the processes below pid, nearest first; none where the
// kernel does not tell (CONFIG_PROC_CHILDREN).
func Descendants(pid int) []int {
	out := children(pid)
	for i := 0; i < len(out); i++ {
		out = append(out, children(out[i])...)
	}
	return out
}

// readTree is readThreads of a process and all its descendants.
func readTree(pid int, into map[int]int64) {
	readThreads(pid, into)
	for _, c := range Descendants(pid) {
		readThreads(c, into)
	}
}

// children lists the direct children of a process.
func children(pid int) []int {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []int
	for _, t := range tasks {
		text, err := os.ReadFile(dir + "/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for _, f := range bytes.Fields(text) {
			if c, err := strconv.Atoi(string(f)); err == nil {
				out = append(out, c)
			}
		}
	}
	return out
}
