// Package results is what an experiment leaves behind, as plain data: samples
// and records of actors, metric definitions and values, the manifest.
//
// The subpackages work on it: store writes and reads a run directory, stat
// summarises repetitions, claim judges, figure draws, report joins all into
// pages. Nothing here knows how a value was measured. All values are in base
// SI units; the unit is the last part of a metric's name (goodput_bps, rtt_s).
package results

import (
	"time"

	"wirelab/emul/hist"
)

// Sample is one row of a time series.
type Sample struct {
	// Actor is the workload and role ("cubic.sender"), link
	// ("net.bottleneck.forward") or instrument the value comes from.
	Actor string `json:"actor"`
	// Flow is the flow's number within the workload, from 0; -1 where the
	// value belongs to no flow.
	Flow   int32  `json:"flow"`
	Metric string `json:"metric"`
	// Time is in seconds since the start of the load (T0), warm-up included.
	Time  float64 `json:"time_s"`
	Value float64 `json:"value"`
}

// Record is what an actor reports once: a summary of named values or a
// histogram, of one flow or (Flow -1) of the actor.
type Record struct {
	Actor  string             `json:"actor"`
	Role   string             `json:"role"`
	Flow   int32              `json:"flow"`
	Name   string             `json:"name,omitempty"` // of a histogram
	Values map[string]float64 `json:"values,omitempty"`
	Text   map[string]string  `json:"text,omitempty"` // e.g. congestion control in use
	Hist   *hist.Histogram    `json:"hist,omitempty"` // in the unit of Name's metric x 1e9 (ns for _s)
}

// MetricDef defines a metric once, for the plan's name check, the report and
// docs/metrics.md.
type MetricDef struct {
	Name       string `json:"name"` // QUANTITY[_STATISTIC]_UNIT
	Unit       string `json:"unit"` // "bit/s", "s", "bytes", "1" (ratio), "packets", …
	Definition string `json:"definition"`
	Source     string `json:"source"`   // RFC, paper or kernel structure it comes from
	PerFlow    bool   `json:"per_flow"` // also exists as flows[*].NAME
}

// Value is one metric of one run. Missing values are absent, never NaN.
type Value struct {
	// Metric is the path after "result.", for example "cubic.goodput_bps" or
	// "net.bottleneck.utilization_ratio".
	Metric string  `json:"metric"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}

// Status is how an actor or a run ended.
type Status string

// The statuses. Only StatusOK and StatusPartial may carry metrics.
const (
	StatusOK          Status = "ok"
	StatusPartial     Status = "partial" // some values were NaN, Inf or missing
	StatusFailed      Status = "failed"
	StatusCrashed     Status = "crashed" // ended by a signal
	StatusNoData      Status = "no_data"
	StatusUnsupported Status = "unsupported"
)

// SweepValue is the value of one sweep variable at a point, as text and, where
// it is a number, as number.
type SweepValue struct {
	Name   string   `json:"name"`
	Text   string   `json:"text"`
	Number *float64 `json:"number,omitempty"`
}

// Point identifies one combination of the sweep.
type Point struct {
	// ID is stable for equal sweep values: "buffer=0.5,cca=reno", "all" without
	// a sweep; safe as a file name.
	ID    string       `json:"id"`
	Sweep []SweepValue `json:"sweep"`
}

// Run is the record of one repetition of one point (run.json).
type Run struct {
	Index      int           `json:"index"`
	Point      Point         `json:"point"`
	Repetition int           `json:"repetition"` // from 0
	Seed       uint64        `json:"seed"`
	Started    time.Time     `json:"started"`
	Duration   time.Duration `json:"duration_ns"` // wall time of the whole run
	Status     Status        `json:"status"`
	Error      string        `json:"error,omitempty"`
	// Valid is false when the emulation or the host was not what was asked;
	// Reasons then says why. A run that is not valid is judged by no check and
	// kept out of claims.
	Valid   bool     `json:"valid"`
	Reasons []string `json:"reasons,omitempty"`
	// Notes are doubts that do not make the run invalid (generator-bound…).
	Notes []string `json:"notes,omitempty"`
	// Attempts is 1 plus the number of repeats after invalid attempts.
	Attempts int `json:"attempts"`
	// PlanHash identifies the evaluated text, seed and host facts used.
	PlanHash string `json:"plan_hash"`
	// Reused is the earlier result directory that the run was taken from.
	Reused string `json:"reused,omitempty"`

	Values []Value `json:"values"`
	// Flows holds, per workload, one map of metrics per flow.
	Flows   map[string][]map[string]float64 `json:"flows,omitempty"`
	Records []Record                        `json:"records,omitempty"`
	Actors  []ActorRecord                   `json:"actors,omitempty"`
	Links   []LinkRecord                    `json:"links,omitempty"`
	Events  []EventStatus                   `json:"events,omitempty"`
	Checks  []CheckResult                   `json:"checks,omitempty"`
	// Overhead is what each instrument cost, as a share of one core.
	Overhead map[string]float64 `json:"overhead,omitempty"`
	// Files are the raw files of the run's directory, written by the store.
	Files []File `json:"files,omitempty"`
}

// File is one raw file of a run, so that every number can be traced to bytes.
type File struct {
	Name   string `json:"name"` // relative to the run's directory
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// ActorRecord tells how one actor process did.
type ActorRecord struct {
	Name        string  `json:"name"` // workload.role
	Node        string  `json:"node"`
	Status      Status  `json:"status"`
	Error       string  `json:"error,omitempty"`
	CPUSeconds  float64 `json:"cpu_s"`
	MaxCoreLoad float64 `json:"max_core_load_ratio"` // busiest thread, share of a core
	Log         string  `json:"log,omitempty"`       // path relative to the run
}

// LinkRecord lays what was asked of a link beside what was achieved.
type LinkRecord struct {
	Name    string         `json:"name"` // topology.link
	Between [2]string      `json:"between"`
	Backend string         `json:"backend"` // "software", "kernel", "none"
	Why     string         `json:"why"`     // why this backend
	Mode    string         `json:"mode"`
	Unit    string         `json:"unit"` // "segment": decisions per MTU-sized segment
	Forward DirectionAsked `json:"forward"`
	Reverse DirectionAsked `json:"reverse"`
	// Offloads are those that are on at the nodes' devices, "NODE:DEVICE" to
	// their names in ethtool: segmentation, checksums, coalescing.
	Offloads map[string][]string `json:"offloads,omitempty"`
	// Calibration of the point; nil where the link was not calibrated.
	Calibration *Calibration `json:"calibration,omitempty"`
}

// DirectionAsked is an impairment as text, for people.
type DirectionAsked struct {
	Text string `json:"text"` // "100 Mbit/s, 20 ms, queue 500000 B drop-tail"
}

// Calibration is asked against achieved of one link, before load.
type Calibration struct {
	RTTAskedS         float64 `json:"rtt_asked_s"`
	RTTMeasuredS      float64 `json:"rtt_measured_s"` // median of the probes
	RTTToleranceS     float64 `json:"rtt_tolerance_s"`
	ForwardAskedBPS   float64 `json:"forward_asked_bps,omitempty"` // 0: not limited
	ForwardBPS        float64 `json:"forward_bps,omitempty"`
	ReverseAskedBPS   float64 `json:"reverse_asked_bps,omitempty"`
	ReverseBPS        float64 `json:"reverse_bps,omitempty"`
	RateToleranceBPS  float64 `json:"rate_tolerance_bps,omitempty"` // of forward
	OK                bool    `json:"ok"`
	Reason            string  `json:"reason,omitempty"`
	DurationS         float64 `json:"duration_s"`
	ReverseToleranceB float64 `json:"reverse_tolerance_bps,omitempty"`
}

// EventStatus is the state of one perf event in one run.
type EventStatus struct {
	Instrument string `json:"instrument"`
	Event      string `json:"event"`
	// Status: ok, not_supported, not_permitted, multiplexed, implausible.
	Status string `json:"status"`
	// RunningRatio is time running / time enabled (1 unless multiplexed).
	RunningRatio float64 `json:"running_ratio"`
}

// CheckResult is a check's judgement of one valid run.
type CheckResult struct {
	Run     int    `json:"run"`
	Name    string `json:"name"`
	Pass    bool   `json:"pass"`
	Message string `json:"message,omitempty"`
	Error   string `json:"error,omitempty"` // the condition could not be evaluated
}

// Verdict of a claim.
type Verdict string

// The verdicts (design: claims are judged by bootstrap over repetitions).
const (
	Holds       Verdict = "holds"
	Fails       Verdict = "fails"
	Undecided   Verdict = "undecided"
	NotTestable Verdict = "not testable here"
)

// ClaimResult is the judgement of a claim over the experiment.
type ClaimResult struct {
	Name      string   `json:"name"`
	Verdict   Verdict  `json:"verdict"`
	Value     *float64 `json:"value"` // point estimate
	Low       *float64 `json:"low"`   // 95 % bootstrap interval
	High      *float64 `json:"high"`
	Published string   `json:"published,omitempty"`
	Source    string   `json:"source,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	N         int      `json:"n"` // valid repetitions used
}

// Manifest describes one run directory (manifest.json).
type Manifest struct {
	Schema         string            `json:"schema"` // "wirelab/manifest/1"
	Experiment     string            `json:"experiment"`
	Title          string            `json:"title"`
	ExperimentHash string            `json:"experiment_sha256"`
	PlanHash       string            `json:"plan_sha256"`
	Variables      map[string]string `json:"variables,omitempty"`
	Flags          []string          `json:"flags,omitempty"` // the run verb's flags, for re-running
	Smoke          bool              `json:"smoke"`
	Substrate      string            `json:"substrate"`
	Duration       float64           `json:"duration_s"`
	Warmup         float64           `json:"warmup_s"`
	Repetitions    int               `json:"repetitions"`
	Seed           uint64            `json:"seed"`
	Host           Host              `json:"host"`
	Version        string            `json:"wirelab_version"`
	Modules        map[string]string `json:"modules,omitempty"` // path@version: sum
	Started        time.Time         `json:"started"`
	Finished       time.Time         `json:"finished,omitzero"`
	Complete       bool              `json:"complete"`
	Interrupted    bool              `json:"interrupted,omitempty"`
	Order          []int             `json:"order"` // run indices in the order made
	Runs           []RunStatus       `json:"runs"`
	Metrics        []NamedMetrics    `json:"metrics"` // definitions, per scope name
	Topology       *Diagram          `json:"topology,omitempty"`
	// Overhead of our own instruments: share of one core.
	Overhead map[string]float64 `json:"overhead,omitempty"`
	Notes    []string           `json:"notes,omitempty"` // formulas and lints of the plan
}

// NamedMetrics are the metric definitions of one name in the result scope.
type NamedMetrics struct {
	Name    string      `json:"name"`
	Kind    string      `json:"kind"`
	Metrics []MetricDef `json:"metrics"`
}

// RunStatus is a manifest's line of one run.
type RunStatus struct {
	Index      int      `json:"index"`
	Point      string   `json:"point"`
	Repetition int      `json:"repetition"`
	Status     Status   `json:"status"` // "" when not made yet
	Valid      bool     `json:"valid"`
	Reasons    []string `json:"reasons,omitempty"`
	Dir        string   `json:"dir,omitempty"`    // runs/NNNN-point
	Reused     string   `json:"reused,omitempty"` // directory it was taken from
}

// Diagram is a topology to draw: nodes with their kinds, links with texts.
type Diagram struct {
	Nodes []DiagramNode `json:"nodes"`
	Links []LinkRecord  `json:"links"`
}

// DiagramNode is one node of a Diagram.
type DiagramNode struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Addresses []string `json:"addresses,omitempty"`
}

// Host is what the results depend on beside the experiment.
type Host struct {
	Hostname    string            `json:"hostname"`
	OS          string            `json:"os"`
	Kernel      string            `json:"kernel"`
	Arch        string            `json:"arch"`
	CPUModel    string            `json:"cpu_model"`
	Cores       int               `json:"cores"`
	SMT         string            `json:"smt,omitempty"`
	Topology    string            `json:"cpu_topology,omitempty"` // sockets x cores x threads
	Governor    string            `json:"governor,omitempty"`
	Mitigations map[string]string `json:"mitigations,omitempty"`
	MemoryBytes int64             `json:"memory_bytes"`
	Sysctls     map[string]string `json:"sysctls,omitempty"`
	Virtual     string            `json:"virtualization,omitempty"`
	LoadAverage string            `json:"load_average,omitempty"`
	Root        bool              `json:"root"`
	GoVersion   string            `json:"go_version"`
	BootID      string            `json:"boot_id,omitempty"`
}
