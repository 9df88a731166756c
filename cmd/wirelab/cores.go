package main

import (
	"errors"
	"fmt"
	"runtime"

	"wirelab/emul/software"
	"wirelab/testbed/journal"
)

// unpinned is the core number of a forwarding thread that goes where the
// scheduler puts it.
const unpinned = -1

// claimCores reserves cores for the forwarding threads, from the last one
// down, so that two wirelab processes on one host do not pin theirs to the
// same. Where others have them all, or cores are too few, threads are not
// pinned. release gives the cores back.
func claimCores() (cores []int, release func() error) {
	want := software.DefaultWorkers()
	var locks []*journal.Lock
	for core := runtime.NumCPU() - 1; core >= 0 && len(cores) < want && runtime.NumCPU() > 1; core-- {
		// An error means that it is taken, or that we may not lock here.
		if l, err := journal.LockName(journal.DefaultDir, fmt.Sprintf("core-%d", core)); err == nil {
			locks, cores = append(locks, l), append(cores, core)
		}
	}
	if len(cores) < want {
		cores = []int{unpinned}
	}
	return cores, func() error {
		var errs []error
		for _, l := range locks {
			errs = append(errs, l.Unlock())
		}
		return errors.Join(errs...)
	}
}
