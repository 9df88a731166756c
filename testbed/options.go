package testbed

import (
	"time"

	"wirelab/emul"
	"wirelab/testbed/journal"
)

// Options say how a topology is built.
type Options struct {
	// RunID names the run on this host; the journal's if there is one, else it
	// must be given (see [NewRunID]).
	RunID string
	// Journal is told every undo step before it is needed; it serves one
	// testbed at a time. Nil: Up creates one in Dir and Close removes it.
	Journal *journal.Journal
	// Dir is where Up creates a journal; "" means [journal.DefaultDir].
	Dir string
	// Version of the program, for the journal that Up creates.
	Version string
	// Backend joins the impaired links; may be nil if there are none.
	Backend emul.Backend
	// Seed of the run; every link draws from a stream of its own.
	Seed uint64
	// EventLog names the file for the events of a link that asks for them.
	// Nil switches the logs off.
	EventLog func(link string) string
	// Log takes one line per phase. Nil discards them.
	Log func(format string, args ...any)
	// Ready bounds the wait for all links to answer, in addition to what their
	// delays need. 0 means 30 s.
	Ready time.Duration
}

// Device is a network device in a node's namespace.
type Device struct {
	Node   string
	Name   string
	Index  int
	Facing string // the node at the other end of the link
}

// CalibrateOptions narrow what Calibrate does. The zero value measures every
// impaired link.
type CalibrateOptions struct {
	// Links to measure; nil means all that are impaired.
	Links []string
	// Attempts per link; 0 means 3. A busy host disturbs a measurement more
	// often than a link is wrong.
	Attempts int
}
