package lang

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"wirelab/testbed/topo"
)

// The structs of this file are the blocks that the language itself defines;
// topologies, workloads and instruments are defined where they live.

// experimentBlock is `experiment "NAME" {}`.
type experimentBlock struct {
	experimentTiming
	experimentSettings
	Smoke *smokeBlock `hcl:"smoke,block" doc:"Overrides for run --smoke. Without it, --smoke makes one repetition of at most 2 s after at most 1 s of warm-up."`
}

// experimentSettings are evaluated once.
type experimentSettings struct {
	Title       string `hcl:"title,optional" doc:"The question the experiment answers; the block's label unless given."`
	Substrate   string `hcl:"substrate,optional" default:"namespace" doc:"Where it runs: \"namespace\". The substrates \"virtual\" and \"physical\" are not available in this version."`
	Repetitions int    `hcl:"repetitions,optional" default:"6" doc:"Runs of each point. Fewer than six give no 95 % interval."`
	Seed        uint64 `hcl:"seed,optional" default:"1" doc:"Fixes the order of the runs and every random draw; repetition r has the same run.seed in every point."`
}

// experimentTiming is evaluated in every point.
type experimentTiming struct {
	Duration  time.Duration `hcl:"duration" doc:"Time under load that metrics cover."`
	Warmup    time.Duration `hcl:"warmup,optional" default:"0s" doc:"Time under load before it, left out of metrics."`
	Emulation string        `hcl:"emulation,optional" default:"auto" doc:"Who enforces impairments: \"auto\" or \"software\"; \"kernel\" is not available in this version. A link may say otherwise."`
}

// smokeBlock is `smoke {}` inside experiment: what it does not name stays.
type smokeBlock struct {
	Duration    *time.Duration `hcl:"duration,optional" doc:"Replaces duration."`
	Warmup      *time.Duration `hcl:"warmup,optional" doc:"Replaces warmup."`
	Repetitions *int           `hcl:"repetitions,optional" doc:"Replaces repetitions."`
	Variables   hcl.Expression `hcl:"variables,optional" doc:"Values of variables: { flows = 2 }."`
	Sweep       hcl.Expression `hcl:"sweep,optional" doc:"Values of sweep variables: { buffer = [1] }; those not named stay."`
	Claims      bool           `hcl:"claims,optional" default:"false" doc:"Claims decide the exit status in smoke too."`
}

// variableBlock is `variable "NAME" {}`.
type variableBlock struct {
	Type        hcl.Expression    `hcl:"type,optional" doc:"Type constraint: string, number, bool, list(number), object({...}), any."`
	Default     hcl.Expression    `hcl:"default,optional" doc:"Value unless --var or --var-file gives one; without it the variable must be given."`
	Description string            `hcl:"description,optional" doc:"For people."`
	Validation  []validationBlock `hcl:"validation,block" doc:"Conditions that the value must meet."`
}

// validationBlock is `validation {}` inside variable.
type validationBlock struct {
	Condition    hcl.Expression `hcl:"condition" doc:"True when the value is fit; may refer to var.* and host.*."`
	ErrorMessage hcl.Expression `hcl:"error_message" doc:"Told when it is not."`
}

// excludeBlock is `exclude {}`.
type excludeBlock struct {
	When hcl.Expression `hcl:"when" doc:"Points where this is true are left out; may refer to sweep.*."`
}

// graphBlock is `topology "graph" "NAME" {}`: the graph made of node and link
// blocks.
type graphBlock struct{}

// nodeBlock is `node "NAME" {}`.
type nodeBlock struct {
	Kind    string            `hcl:"kind,optional" default:"host" doc:"What it does with packets: \"host\", \"router\" (forwards IP packets) or \"bridge\" (forwards Ethernet frames)."`
	Sysctls map[string]string `hcl:"sysctls,optional" doc:"Kernel settings of the node's namespace: { \"net.ipv4.tcp_ecn\" = \"1\" }."`
}

// linkBlock is `link "NAME" {}`.
type linkBlock struct {
	Between []string `hcl:"between" doc:"The two nodes; forward is from the first to the second. \"r1:left\" also names the device at the node r1."`
	topo.LinkSpec
}

// checkBlock is `check "NAME" {}`.
type checkBlock struct {
	Condition    hcl.Expression `hcl:"condition" doc:"Judged in each valid run; may refer to result.*, sweep.* and run.*."`
	ErrorMessage hcl.Expression `hcl:"error_message,optional" doc:"Told when it is false."`
}

// claimBlock is `claim "NAME" {}`.
type claimBlock struct {
	Value     hcl.Expression `hcl:"value,optional" doc:"The number that is claimed: an expression over aggregates (median, mean, min, max, quantile, count)."`
	Condition hcl.Expression `hcl:"condition" doc:"What is claimed; may refer to value and to aggregates."`
	Published hcl.Expression `hcl:"published,optional" doc:"The value in the source, as text or number, shown beside ours."`
	Source    string         `hcl:"source,optional" doc:"Where it was published."`
	Interval  string         `hcl:"interval,optional" default:"bootstrap" doc:"\"none\" judges once, for values that do not vary."`
	Requires  hcl.Expression `hcl:"requires,optional" doc:"Where this is false the claim is not testable here: host.cores >= 4."`
}

// figureBlock is `figure "NAME" {}`.
type figureBlock struct {
	Title string   `hcl:"title,optional" doc:"Above the figure; the block's label unless given."`
	Kind  string   `hcl:"kind,optional" default:"line" doc:"\"line\" (metrics against a sweep variable) or \"time\" (samples against time)."`
	X     string   `hcl:"x,optional" doc:"Sweep variable of a line figure; may be left out when the sweep has only one."`
	Y     []string `hcl:"y" doc:"Metrics without \"result.\": \"cubic.goodput_bps\"."`
	By    string   `hcl:"by,optional" doc:"Sweep variable that splits each y into one line per value."`
	LogX  bool     `hcl:"log_x,optional" default:"false" doc:"Logarithmic x axis."`
	LogY  bool     `hcl:"log_y,optional" default:"false" doc:"Logarithmic y axis."`
}
