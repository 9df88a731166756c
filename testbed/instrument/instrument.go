// Package instrument measures what the lab itself does during a run: TCP
// state of every flow, core load, link backlog, perf counters, captures.
//
// An instrument kind is described by a [Kind] and listed in [Kinds]; the
// language decodes an instrument block into the struct that Kind.New returns.
// Some run in every experiment without being named ([Defaults]); naming one
// changes its settings or, with enabled = false, switches it off.
//
// Order of calls: Kind.New, decode, Validate, Needs and Metrics at plan time;
// in a run, [Instrument.Start] before T0 and [Running.Stop] after the load.
// Every sampling instrument works on one thread of its own (see loop), reads
// at both edges of the measurement window and at its interval in between, and
// stretches the interval rather than use more than a twentieth of a core; what
// it did use is reported. Values cover the measurement window, samples the
// whole load. A value that could not be measured is absent, with a note or an
// event status that says why; it is never zero.
//
// Links are measured by the backlog instrument (see [StartLinkMeter]), whose
// values belong to the links' own names in the result scope: Result.Links.
package instrument

import (
	"context"

	"wirelab/emul"
	"wirelab/emul/attr"
	"wirelab/emul/unit"
	"wirelab/results"
)

// Kind is one registered instrument kind.
type Kind struct {
	Name string
	Doc  string
	// New returns a pointer to a configuration struct to decode into, its
	// defaults already set.
	New func() Instrument
}

// Instrument is a decoded instrument block: configuration, no running state.
type Instrument interface {
	Validate() []attr.Problem
	// Needs names the nodes or links ("net.bottleneck") it attaches to, to be
	// checked by the plan.
	Needs() (nodes, links []string)
	Metrics() []results.MetricDef
	// Start begins measuring; it must be ready when it returns. A disabled
	// instrument starts as one that finds nothing.
	Start(ctx context.Context, t Target) (Running, error)
}

// Running is a started instrument.
type Running interface {
	// Stop ends it and returns what it found. It is called once.
	Stop() (Result, error)
}

// Result is what an instrument found in one run.
type Result struct {
	Values map[string]float64 // metric name: value; missing values are absent
	// Links are the metrics of links and directions, "net.bottleneck" and
	// "net.bottleneck.reverse"; only the backlog instrument gives them.
	Links   map[string]map[string]float64
	Events  []results.EventStatus
	Notes   []string
	Records []results.Record
	// Invalid holds reasons why the run must not be trusted (a required event
	// was missing, the host was contended).
	Invalid []string
	// CPUSeconds is what measuring cost.
	CPUSeconds float64
}

// Namespace runs fn on a thread inside a node's network namespace.
type Namespace interface {
	Do(fn func() error) error
	Path() string
}

// Process is one actor process to observe.
type Process struct {
	Name string // workload.role
	Node string
	PID  int
	Kind string // the workload's kind: "tcp", "command", …
}

// Link is what the lab knows of one link.
type Link struct {
	Name    string // "net.bottleneck"
	Backend string // "software"; "none" for a bare veth pair
	// Forward and Reverse are the rates of the two directions, 0 if not limited.
	Forward, Reverse unit.Rate
}

// Target is what an instrument may observe.
type Target struct {
	Name  string // the block's name
	Dir   string // run directory for files
	Nodes map[string]Namespace
	// Links are all links, in any order.
	Links []Link
	// Counters reads the emulated links' counters now ([emul.Session]); nil
	// where no link is emulated. It is called from one goroutine at a time.
	Counters func() (emul.Snapshot, error)
	// CountersLight is the same without histograms ([emul.Sampler]), used
	// between the edges of the window; nil where there is no cheaper way.
	CountersLight func() (emul.Snapshot, error)
	// Devices maps "net.link" to the devices of both ends: node, device name.
	Devices   map[string][2]Device
	Processes []Process
	// T0NS is CLOCK_MONOTONIC of the start of the load, in ns; Start is called
	// before it.
	T0NS int64
	// StartS and EndS are the measurement window, seconds since T0.
	StartS, EndS float64
	// Record takes samples; safe for concurrent use; nil drops them.
	Record func(results.Sample)
}

// record passes on one sample at now (CLOCK_MONOTONIC, ns).
func (t *Target) record(now int64, actor string, flow int32, metric string, value float64) {
	if t.Record == nil {
		return
	}
	t.Record(results.Sample{Actor: actor, Flow: flow, Metric: metric, Time: float64(now-t.T0NS) / 1e9, Value: value})
}

// Device is a network device in a node's namespace.
type Device struct {
	Node   string
	Name   string
	Index  int
	Facing string // the node at the other end of the link
}
