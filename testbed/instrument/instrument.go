// Package instrument measures what the lab itself does during a run: TCP
// state of every flow, core load, link backlog, perf counters, captures.
//
// An instrument kind is described by a [Kind]; the language decodes an
// instrument block into the struct that Kind.New returns. Some run in every
// experiment without being named ([Defaults]); naming one changes its
// settings or, with enabled = false, switches it off.
package instrument

import (
	"context"

	"wirelab/emul/attr"
	"wirelab/results"
)

// Kind is one registered instrument kind.
type Kind struct {
	Name string
	Doc  string
	New  func() Instrument
}

// Instrument is a decoded instrument block: configuration, no running state.
type Instrument interface {
	Validate() []attr.Problem
	// Needs names the nodes or links ("net.bottleneck") it attaches to, to be
	// checked by the plan.
	Needs() (nodes, links []string)
	Metrics() []results.MetricDef
	// Start begins measuring; it must be ready when it returns.
	Start(ctx context.Context, t Target) (Running, error)
}

// Running is a started instrument.
type Running interface {
	// Stop ends it and returns what it found. It is called once.
	Stop() (Result, error)
}

// Result is what an instrument found in one run.
type Result struct {
	Values  map[string]float64 // metric name: value; missing values are absent
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
}

// Target is what an instrument may observe.
type Target struct {
	Name  string // the block's name
	Dir   string // run directory for files
	Nodes map[string]Namespace
	// Devices maps "net.link" to the devices of both ends: node, device name.
	Devices   map[string][2]Device
	Processes []Process
	// T0NS is CLOCK_MONOTONIC of the start of the load, in ns; Start is called
	// before it.
	T0NS int64
	// StartS and EndS are the measurement window, seconds since T0.
	StartS, EndS float64
	// Record takes samples; safe for concurrent use.
	Record func(results.Sample)
}

// Device is a network device in a node's namespace.
type Device struct {
	Node   string
	Name   string
	Index  int
	Facing string // the node at the other end of the link
}
