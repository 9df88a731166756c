package workloads

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// pin binds every thread of this process to cores; threads made later inherit
// it. Without cores it does nothing.
func pin(cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, c := range cores {
		set.Set(c)
	}
	// Twice: a thread not yet bound may have made another one meanwhile.
	for range 2 {
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("pin to cores %v: %w", cores, err)
		}
		for _, t := range tasks {
			tid, err := strconv.Atoi(t.Name())
			if err != nil {
				continue
			}
			if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("pin to cores %v: %w: name cores that this host has", cores, err)
			}
		}
	}
	return nil
}

func closeOnExec(fd int) { unix.CloseOnExec(fd) }
