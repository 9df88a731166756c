package lang

import (
	"context"
	"fmt"
	"time"

	"wirelab/emul"
	"wirelab/emul/attr"
	"wirelab/emul/unit"
	"wirelab/results"
	"wirelab/testbed/instrument"
	"wirelab/workloads"
)

// fakeTraffic stands for a workload that needs two nodes.
type fakeTraffic struct {
	workloads.Placement
	Flows      int           `hcl:"flows,optional" default:"1" doc:"Number of flows."`
	Congestion string        `hcl:"congestion,optional" default:"cubic" doc:"Congestion control."`
	Pacing     unit.Rate     `hcl:"pacing,optional" doc:"Upper bound of the rate."`
	Interval   time.Duration `hcl:"interval,optional" default:"100ms" doc:"Width of the bins."`
	Peer       string        `hcl:"peer,optional" doc:"Address of the other end."`
	Arrivals   *fakeArrivals `hcl:"arrivals,block" doc:"Open loop."`
}

type fakeArrivals struct {
	Load  unit.Ratio `hcl:"load" doc:"Share of the capacity."`
	Sizes []fakeSize `hcl:"size,block" doc:"Sizes and their weights."`
}

type fakeSize struct {
	Name   string    `hcl:"name,label"`
	Mean   unit.Size `hcl:"mean" doc:"Mean size."`
	Weight *float64  `hcl:"weight,optional" doc:"Weight."`
}

func (w *fakeTraffic) Validate() []attr.Problem {
	var out []attr.Problem
	if w.From == "" || w.To == "" {
		out = append(out, attr.At("", "needs two nodes", `name them in "from" and "to"`))
	}
	if w.Flows < 1 {
		out = append(out, attr.At("flows", "wrong number of flows", "%d is less than 1", w.Flows))
	}
	if w.Arrivals != nil && w.Arrivals.Load > 1 {
		out = append(out, attr.Under("arrivals", []attr.Problem{attr.At("load", "too much load", "%s is above 100%%", w.Arrivals.Load)})...)
	}
	return out
}

func (w *fakeTraffic) Roles() []workloads.Role { return nil }

func (w *fakeTraffic) Metrics() []results.MetricDef {
	return []results.MetricDef{
		{Name: "goodput_bps", Unit: "bit/s", PerFlow: true},
		{Name: "retransmissions_count", Unit: "packets", PerFlow: true},
		{Name: "fairness_ratio", Unit: "1"},
		{Name: "rtt_p50_s", Unit: "s"},
		{Name: "rtt_min_s", Unit: "s"},
		{Name: "rtt_p99_s", Unit: "s"},
		{Name: "completed_count", Unit: "1"},
	}
}

func (w *fakeTraffic) Reduce(workloads.Reduction) workloads.Outcome { return workloads.Outcome{} }

var _ workloads.Workload = (*fakeTraffic)(nil)

// fakeEvents stands for an instrument that attaches to links.
type fakeEvents struct {
	Events []string `hcl:"events" doc:"Events to count."`
	Link   string   `hcl:"link,optional" doc:"Link to watch."`
}

func (f *fakeEvents) Validate() []attr.Problem { return nil }

func (f *fakeEvents) Needs() (nodes, links []string) {
	if f.Link != "" {
		links = []string{f.Link}
	}
	return nil, links
}

func (f *fakeEvents) Metrics() []results.MetricDef {
	return []results.MetricDef{{Name: "events_count", Unit: "1"}}
}

func (f *fakeEvents) Start(context.Context, instrument.Target) (instrument.Running, error) {
	return nil, fmt.Errorf("a fake does not start")
}

var _ instrument.Instrument = (*fakeEvents)(nil)

// fakeBackend supports rates up to 40 Gbit/s.
type fakeBackend struct{}

func (fakeBackend) Name() string { return "software" }

func (fakeBackend) Supports(i emul.Impairment) error {
	if i.Rate > 40_000_000_000 {
		return &emul.UnsupportedError{Backend: "software", Field: "rate", Reason: i.Rate.String() + " is above 40gbit", Remedy: "leave rate out"}
	}
	if i.AQM != "" && i.AQM != "droptail" {
		return &emul.UnsupportedError{Backend: "software", Field: "aqm", Reason: "it has no " + i.AQM, Remedy: `write aqm = "droptail"`}
	}
	return nil
}

func (fakeBackend) Join(context.Context, []emul.Cable) (emul.Session, error) {
	return nil, fmt.Errorf("a fake does not join")
}

var _ emul.Backend = fakeBackend{}

func fakeKinds() Kinds {
	k := Kinds{}.orBuiltIn()
	k.Workloads = []workloads.Kind{
		{Name: "tcp", Doc: "Fake traffic.", New: func() workloads.Workload { return &fakeTraffic{} }},
		{Name: "ping", Doc: "Fake probes.", New: func() workloads.Workload { return &fakeTraffic{} }},
	}
	k.Instruments = []instrument.Kind{{Name: "perf", Doc: "Fake counters.", New: func() instrument.Instrument { return &fakeEvents{} }}}
	k.Defaults = nil
	return k
}
