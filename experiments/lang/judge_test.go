package lang

import (
	"math"
	"strings"
	"testing"

	"wirelab/experiments"
	"wirelab/results"
)

const judged = `
experiment "j" {
  duration    = "10s"
  repetitions = 3
}

variable "least" {
  default = 0.5
}

locals {
  wanted = sweep.buffer * 100
  first  = run.repetition == 0
}

sweep {
  buffer = [1, 2]
  cca    = ["cubic", "reno"]
}

topology "dumbbell" "net" {
  bottleneck {
    rate = "100mbit"
    rtt  = "40ms"
  }
}

workload "tcp" "a" {
  from = "left1"
  to   = "right1"
}
workload "tcp" "b" {
  from = "left1"
  to   = "right1"
}
`

// runsOf makes one run per point and repetition: goodput of a is 100 x buffer +
// repetition, of b 50 x buffer.
func runsOf(x *experiments.Experiment) []*results.Run {
	var out []*results.Run
	for _, p := range x.Points {
		for r, s := range p.Repetitions {
			buffer := *p.Sweep[0].Number
			out = append(out, &results.Run{
				Index: len(out), Point: p.Point, Repetition: r, Seed: s.Seed, Valid: true,
				Values: []results.Value{
					{Metric: "a.goodput_bps", Value: 100*buffer + float64(r)},
					{Metric: "b.goodput_bps", Value: 50 * buffer},
					{Metric: "net.bottleneck.utilization_ratio", Value: 0.9},
					{Metric: "net.bottleneck.reverse.utilization_ratio", Value: 0.1},
				},
				Flows: map[string][]map[string]float64{"a": {{"goodput_bps": 10}, {"goodput_bps": 30}}},
			})
		}
	}
	return out
}

func TestChecks(t *testing.T) {
	x := mustLoad(t, judged+`
check "local" {
  condition     = result.a.goodput_bps >= local.wanted && (local.first || result.a.goodput_bps > local.wanted)
  error_message = "no"
}
check "flows" {
  condition = sum(result.a.flows[*].goodput_bps) == 40 && jain(result.a.flows[*].goodput_bps) == 0.8 && min(result.a.flows[*].goodput_bps...) == 10 && result.a.flows[1].goodput_bps == 30
}
check "reverse" {
  condition     = result.net.bottleneck.reverse.utilization_ratio > result.net.bottleneck.utilization_ratio
  error_message = "${format("%.1f", result.net.bottleneck.reverse.utilization_ratio)} in ${sweep.cca}, repetition ${run.repetition}"
}
check "missing" {
  condition = result.a.rtt_p50_s > 0
}
check "try" {
  condition = try(result.a.rtt_p50_s, 7) == 7
}
check "unnamed" {
  condition = result["a"].goodput_bps < 0
}
`)
	run := runsOf(x)[1] // buffer=1,cca=cubic, repetition 1
	want := []struct {
		pass         bool
		message, err string
	}{
		{true, "", ""}, {true, "", ""},
		{false, "0.1 in cubic, repetition 1", ""},
		{false, "", "run 1 (buffer=1,cca=cubic, repetition 1) has no value of a.rtt_p50_s"},
		{true, "", ""},
		{false, "", ""},
	}
	for i, c := range x.Checks {
		pass, message, err := c.Eval(run)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if pass != want[i].pass || message != want[i].message || text != want[i].err {
			t.Errorf("%s: %v %q %q, want %+v", c.Name, pass, message, text, want[i])
		}
	}
}

func TestClaims(t *testing.T) {
	x := mustLoad(t, judged+`
claim "ratio" {
  value     = median(result.a.goodput_bps / result.b.goodput_bps, sweep.buffer == 1)
  condition = value >= var.least && value < 2.1
  published = 2
  source    = "a paper"
}
claim "no value" {
  condition = max(result.a.goodput_bps) == 202 && min(result.a.goodput_bps, sweep.cca == "reno" && sweep.buffer == 2) == 200
  interval  = "none"
}
claim "counted" {
  value     = count(result.a.goodput_bps > 200) + count(result.a.goodput_bps, run.repetition == 0) * 100
  condition = value == 404
}
claim "spread" {
  value     = quantile(result.a.goodput_bps, 0.25, sweep.buffer == 1) - mean(result.b.goodput_bps, sweep.buffer == 1)
  condition = true
}
claim "inner functions" {
  value     = mean(max(result.a.goodput_bps, result.b.goodput_bps), local.first)
  condition = value == 150
}
claim "pooled" {
  value     = mean(result.a.flows[*].goodput_bps)
  condition = value == 20
}
claim "each" {
  condition = alltrue([for b in [1, 2] : median(result.a.goodput_bps, sweep.buffer == b) == b * 100 + 1])
}
claim "nothing" {
  value     = median(result.a.goodput_bps, sweep.buffer == 3)
  condition = value > 0
}
claim "missing" {
  value     = median(result.a.rtt_p50_s)
  condition = value > 0
}
claim "elsewhere" {
  condition = median(result.a.goodput_bps) > 0
  requires  = host.cores > 100
}
`)
	runs := runsOf(x)
	value := func(v float64) *float64 { return &v }
	want := map[string]struct {
		value     *float64
		condition bool
		err       string
	}{
		"ratio":           {value(2.02), true, ""},
		"no value":        {nil, true, ""},
		"counted":         {value(404), true, ""},
		"spread":          {value(50.25), true, ""},
		"inner functions": {value(150), true, ""},
		"pooled":          {value(20), true, ""},
		"each":            {nil, true, ""},
		"nothing":         {nil, false, "no valid run has a value for median"},
		"missing":         {nil, false, "run 0 (buffer=1,cca=cubic, repetition 0) has no value of a.rtt_p50_s"},
		"elsewhere":       {nil, true, ""},
	}
	if len(x.Claims) != len(want) {
		t.Fatalf("%d claims", len(x.Claims))
	}
	for _, c := range x.Claims {
		for range 2 { // from the cache the second time
			e, err := c.Eval(runs)
			w := want[c.Name]
			if w.err != "" {
				if err == nil || err.Error() != w.err {
					t.Errorf("%s: error %v, want %s", c.Name, err, w.err)
				}
				continue
			}
			if err != nil || e.Condition != w.condition || (e.Value == nil) != (w.value == nil) || e.Value != nil && math.Abs(*e.Value-*w.value) > 1e-9 {
				t.Errorf("%s: %+v %v, want %+v", c.Name, e, err, w)
			}
		}
	}
	if e, err := x.Claims[0].Eval(runs); err != nil || len(e.Used) != 6 {
		t.Errorf("the claim rests on %d runs, not on the 6 of buffer=1", len(e.Used))
	}
	if c := x.Claims[0]; c.Published != "2" || c.Source != "a paper" || c.NoInterval {
		t.Errorf("claim: %+v", c)
	}
	if c := x.Claims[1]; !c.NoInterval {
		t.Errorf("claim: %+v", c)
	}
	if c := x.Claims[9]; !strings.Contains(c.NotTestable, "host.cores > 100") || x.HostFacts["cores"] != "4" {
		t.Errorf("claim: %+v, facts %v", c, x.HostFacts)
	}
}

// TestClaimsOfForeignRuns judges runs of a point that the plan does not have,
// as when an older directory is reported again.
func TestClaimsOfForeignRuns(t *testing.T) {
	x := mustLoad(t, judged+`
claim "one" {
  value     = median(result.a.goodput_bps, sweep.buffer == 8 && sweep.cca == "bbr")
  condition = value == 5
}
`)
	eight := 8.0
	run := &results.Run{
		Point:  results.Point{ID: "buffer=8,cca=bbr", Sweep: []results.SweepValue{{Name: "buffer", Text: "8", Number: &eight}, {Name: "cca", Text: "bbr"}}},
		Values: []results.Value{{Metric: "a.goodput_bps", Value: 5}},
	}
	if e, err := x.Claims[0].Eval([]*results.Run{run}); err != nil || !e.Condition {
		t.Errorf("%+v, %v", e, err)
	}
}

// BenchmarkClaim evaluates a claim over 2000 resamples of 30 runs.
func BenchmarkClaim(b *testing.B) {
	x := mustLoad(b, judged+`
claim "ratio" {
  value     = median(result.a.goodput_bps / result.b.goodput_bps, sweep.buffer == 1)
  condition = value >= 0.5
}
`, func(o *Options) { o.Repetitions = 15 })
	runs := runsOf(x)
	for b.Loop() {
		for range 2000 {
			if _, err := x.Claims[0].Eval(runs); err != nil {
				b.Fatal(err)
			}
		}
	}
}
