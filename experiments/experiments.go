// Package experiments describes an experiment after its file has been read:
// pure data, every expression evaluated.
//
// experiments/lang reads files into it, experiments/plan orders the runs,
// experiments/runner makes them, experiments/library holds ready ones.
package experiments

import (
	"time"

	"wirelab/results"
	"wirelab/results/claim"
	"wirelab/results/figure"
	"wirelab/testbed"
	"wirelab/testbed/instrument"
	"wirelab/workloads"
)

// Experiment is a whole file, expanded and evaluated.
type Experiment struct {
	Name        string
	Title       string
	Substrate   string // "namespace"; "virtual", "physical" later
	Emulation   string // "auto", "software", "kernel"
	Duration    time.Duration
	Warmup      time.Duration
	Repetitions int
	Seed        uint64
	Smoke       bool
	// SmokeClaims says that claims decide in smoke.
	SmokeClaims bool
	// Variables as they were given or defaulted, as text.
	Variables map[string]string
	// SweepNames in the order of the file.
	SweepNames []string
	Points     []Point
	Checks     []Check
	Claims     []claim.Claim
	Figures    []figure.Figure
	// Metrics are the definitions of every name in the result scope.
	Metrics []results.NamedMetrics
	// HostFacts are the host.* that the file refers to, with their values as
	// text: what the plan depends on besides the file.
	HostFacts map[string]string
	// Notes are formulas used and lints that do not stop the plan.
	Notes []string
	// Source is the exact text of the file (or files, joined).
	Source []byte
}

// Point is one combination of the sweep, with what it evaluates to. Runs of
// one point differ only in repetition and seed, so the workloads are kept per
// repetition.
type Point struct {
	results.Point
	// Repetitions holds one evaluated setup per repetition.
	Repetitions []Setup
}

// Setup is everything one run needs. Setups share what is equal in them, so
// nothing in them may be changed.
type Setup struct {
	Repetition int
	Seed       uint64 // run.seed: equal in every point for one repetition
	// Duration and Warmup may depend on the sweep.
	Duration    time.Duration
	Warmup      time.Duration
	Topology    *testbed.Topology // nil without a topology block
	Workloads   []NamedWorkload
	Instruments []NamedInstrument
	// Text is the canonical evaluated form, hashed into results.Run.PlanHash.
	Text []byte
}

// NamedWorkload is one workload block.
type NamedWorkload struct {
	Name   string
	Kind   string
	Config workloads.Workload
}

// NamedInstrument is one instrument block.
type NamedInstrument struct {
	Name   string
	Kind   string
	Config instrument.Instrument
}

// Check judges each valid run.
type Check struct {
	Name string
	// Eval returns pass and, where it failed, the author's message.
	Eval func(run *results.Run) (pass bool, message string, err error)
}

// Judge sets the run's check results anew: none where it is not usable (failed
// or not valid). A condition that cannot be evaluated stands there as an error.
func (x *Experiment) Judge(run *results.Run) {
	run.Checks = nil
	if !run.Usable() {
		return
	}
	for _, c := range x.Checks {
		res := results.CheckResult{Run: run.Index, Name: c.Name}
		pass, message, err := c.Eval(run)
		if err != nil {
			res.Error = err.Error()
		} else {
			res.Pass, res.Message = pass, message
		}
		run.Checks = append(run.Checks, res)
	}
}
