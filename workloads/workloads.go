// Package workloads drives the network: a registry of workload kinds, the
// protocol between the orchestrator and an actor process, and what an actor
// is given to work with.
//
// A workload kind is described by a [Kind]. The language decodes a workload
// block into the struct that Kind.New returns (see package attr for the tags);
// the plan asks it which [Role]s it needs on which nodes and which metrics it
// will give. The runner starts every role as a process of our own binary
// (`wirelab actor KIND ROLE`) inside its node's namespace: servers first, then,
// when those are ready, clients, and releases all at one instant T0. What the
// actors report becomes the workload's metrics in Reduce.
//
// Sockets of actors are plain sockets: the process already is in its node's
// namespace. This package and its subpackages never import testbed.
package workloads

import (
	"context"
	"encoding/json"
	"time"

	"wirelab/emul/attr"
	"wirelab/results"
)

// Kind is one registered workload kind.
type Kind struct {
	Name string // the block label: "tcp", "ping", "command"
	Doc  string // one paragraph for the language reference
	// New returns a pointer to a configuration struct to decode into.
	New func() Workload
	// Actors are the implementations of the roles, run by `wirelab actor`.
	Actors map[string]func() Actor
	// Series define the time series its actors report.
	Series []results.MetricDef
}

// Placement holds the attributes that all workloads share; kinds embed it.
type Placement struct {
	From  string        `hcl:"from,optional" doc:"Node that starts the traffic."`
	To    string        `hcl:"to,optional" doc:"Node at the other end."`
	On    string        `hcl:"on,optional" doc:"The one node it runs on, for kinds with one role."`
	Start time.Duration `hcl:"start,optional" default:"0s" doc:"Start after the beginning of the load, warm-up included."`
	Stop  time.Duration `hcl:"stop,optional" doc:"Stop after the beginning of the load; default: at its end."`
	After string        `hcl:"after,optional" doc:"Name of a workload whose end starts this one."`
	Cores []int         `hcl:"cores,optional" doc:"Cores that its processes are pinned to."`
}

// Common returns the placement; embedding it implements this method.
func (p *Placement) Common() *Placement { return p }

// Workload is a decoded workload block. Implementations are pointers to
// configuration structs and hold no running state.
type Workload interface {
	Common() *Placement
	// Validate finds what is wrong with the attributes' values, beyond what
	// the decoder found. Node names are checked by the plan.
	Validate() []attr.Problem
	// Roles lists the processes, servers first.
	Roles() []Role
	// Metrics lists every metric that Reduce may return.
	Metrics() []results.MetricDef
	// Reduce turns what the actors reported into the values of one run. It is
	// called only when no actor failed; missing data is a missing value.
	Reduce(in Reduction) Outcome
}

// Locator is a workload with paths of files, relative to its experiment. The
// language calls Locate with the experiment's directory before Validate; where
// nobody does, paths are relative to the current directory.
type Locator interface {
	Locate(dir string)
}

// Role is one process that a workload needs.
type Role struct {
	Name   string // key of Kind.Actors: "receiver", "sender"
	Node   string
	Server bool // started first; must report ready before clients start
	// Config is what the actor decodes from its spec (JSON), usually the
	// workload itself.
	Config any
}

// Window is the part of the load that metrics cover, in seconds since T0.
type Window struct {
	Start float64 `json:"start_s"` // warm-up
	End   float64 `json:"end_s"`   // warm-up + duration
}

// Length of the window in seconds.
func (w Window) Length() float64 { return w.End - w.Start }

// Reduction is the input of Reduce: everything this workload's actors said.
type Reduction struct {
	Window  Window
	Samples []results.Sample // all samples, warm-up included
	Records []results.Record
}

// Outcome is the output of Reduce.
type Outcome struct {
	Values map[string]float64   // metric name: value
	Flows  []map[string]float64 // per flow, in flow order; nil where none
	Status results.Status       // ok, partial or no_data
	Notes  []string             // doubts, for example "generator-bound"
	// Invalid holds reasons why the run must not be trusted: the generator fell
	// behind, so that the load was not what was asked.
	Invalid []string
}

// Spec is the first message to an actor.
type Spec struct {
	Kind     string `json:"kind"`
	Role     string `json:"role"`
	Workload string `json:"workload"` // the block's name
	Node     string `json:"node"`
	// Config is the role's Config.
	Config json.RawMessage `json:"config"`
	// Nodes maps every node to its addresses, first IPv4 then IPv6.
	Nodes map[string][]string `json:"nodes"`
	// Endpoints are what the servers of this workload reported ready, by name:
	// "data": "10.0.0.2:40123". Clients only.
	Endpoints map[string]string `json:"endpoints,omitempty"`
	Seed      uint64            `json:"seed"` // of run and workload
	Window    Window            `json:"window"`
	// StartS and StopS bound this workload's own activity, seconds since T0.
	StartS float64 `json:"start_s"`
	StopS  float64 `json:"stop_s"`
	// After is set when the actor must wait for a second start message
	// ("go") after T0: another workload's end triggers it.
	After bool  `json:"after,omitempty"`
	Cores []int `json:"cores,omitempty"`
	// Dir is a directory that the actor may leave files in.
	Dir string `json:"dir"`
	// Binary is our own executable, for actors that start helpers.
	Binary string `json:"binary"`
}

// Actor runs one role in its own process.
type Actor interface {
	// Run returns when the work is done or ctx ends (a stop message or the
	// orchestrator's death). An error is reported as failed; wrap
	// [ErrUnsupported] for unsupported.
	Run(ctx context.Context, env *Env) error
}
