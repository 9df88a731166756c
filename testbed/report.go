package testbed

import "time"

// Finding is what Doctor found out about one thing.
type Finding struct {
	Name   string
	OK     bool
	Detail string // what was tried and seen
	Remedy string // what to do if it is not OK, "" if nothing can or need be done
	// Needed says that no experiment runs on this host without it.
	Needed bool
}

// Report tells what Clean did.
type Report struct {
	// Cleaned are the dead runs, undone and removed.
	Cleaned []CleanedRun
	// Live are the runs whose owner is alive; nothing of theirs was touched.
	Live []string
}

// CleanedRun is one dead run.
type CleanedRun struct {
	Run     string
	Version string    // of the program that was running
	Created time.Time // zero if its journal was torn at the beginning
	// Reboot says that the run is from before the last boot, so that there was
	// nothing left to undo but its files.
	Reboot bool
	// Done tells each thing that was still there, for people.
	Done []string
}
