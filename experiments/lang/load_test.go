package lang

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"wirelab/emul"
	"wirelab/experiments"
)

// loadText loads one file with the fakes.
func loadText(t testing.TB, text string, change ...func(*Options)) (*experiments.Experiment, *Files, Diagnostics) {
	t.Helper()
	opts := Options{
		FS:       fstest.MapFS{"x.hcl": {Data: []byte(text)}},
		Kinds:    fakeKinds(),
		Backends: []emul.Backend{fakeBackend{}},
		Host:     Host{Cores: 4, Kernel: "6.1.0", OS: "linux", Arch: "amd64"},
	}
	for _, c := range change {
		c(&opts)
	}
	return Load([]string{"x.hcl"}, opts)
}

func mustLoad(t testing.TB, text string, change ...func(*Options)) *experiments.Experiment {
	t.Helper()
	x, _, diags := loadText(t, text, change...)
	if diags.HasErrors() {
		var b strings.Builder
		if err := diags.WriteText(&b, 100, false); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("unexpected errors:\n%s", b.String())
	}
	return x
}

const buffers = `
experiment "buffers" {
  title       = "How large must the buffer be?"
  substrate   = "namespace"
  duration    = "30s"
  warmup      = "5s"
  repetitions = 6
  seed        = 1

  smoke {
    duration    = "2s"
    warmup      = "1s"
    repetitions = 1
    sweep       = { buffer = [0.5, 1] }
  }
}

variable "flows" {
  type    = number
  default = 16
}

locals {
  rate = "100mbit"
  rtt  = "40ms"
}

sweep {
  buffer = [0.25, 0.5, 1, 2, 4] # in BDP
}

topology "dumbbell" "net" {
  hosts = 2 # on each side
  bottleneck {
    rate  = local.rate
    rtt   = local.rtt
    queue = bdp(local.rate, local.rtt, sweep.buffer)
    aqm   = "droptail"
  }
}

workload "tcp" "cubic" {
  from       = "left1"
  to         = "right1"
  flows      = var.flows / 2
  congestion = "cubic"
}

workload "tcp" "reno" {
  from       = "left2"
  to         = "right2"
  flows      = var.flows / 2
  congestion = "reno"
}

instrument "perf" "cache" { events = ["cache-references", "cache-misses"] }

check "the bottleneck is busy" {
  condition     = result.net.bottleneck.utilization_ratio >= 0.9
  error_message = "Utilization was ${format("%.2f", result.net.bottleneck.utilization_ratio)}."
}

claim "reno is not starved at one BDP" {
  value     = median(result.reno.goodput_bps / result.cubic.goodput_bps, sweep.buffer == 1)
  condition = value >= 0.5
  published = null
}

figure "share" {
  kind = "line"
  x    = "buffer"
  y    = ["cubic.goodput_bps", "reno.goodput_bps"]
}
`

func TestLoadBuffers(t *testing.T) {
	x := mustLoad(t, buffers)
	if x.Name != "buffers" || x.Duration != 30*time.Second || x.Warmup != 5*time.Second || x.Repetitions != 6 || x.Seed != 1 {
		t.Errorf("settings: %+v", x)
	}
	if len(x.Points) != 5 || x.Points[0].ID != "buffer=0.25" || x.Points[4].ID != "buffer=4" {
		t.Fatalf("points: %+v", x.Points)
	}
	s := x.Points[1].Repetitions[2]
	if len(x.Points[1].Repetitions) != 6 || s.Repetition != 2 || s.Seed != x.Points[3].Repetitions[2].Seed || s.Seed == x.Points[1].Repetitions[1].Seed {
		t.Errorf("repetitions: %+v", s)
	}
	k := s.Topology.Links[0]
	if k.Name != "bottleneck" || k.Forward.Rate != 100_000_000 || k.Forward.Delay != 20*time.Millisecond || k.Forward.Queue.Bytes != 250000 || k.Backend != "software" {
		t.Errorf("bottleneck: %+v", k)
	}
	if w := s.Workloads[1].Config.(*fakeTraffic); s.Workloads[1].Name != "reno" || w.Flows != 8 || w.Congestion != "reno" || w.Interval != 100*time.Millisecond {
		t.Errorf("workload: %+v", w)
	}
	if len(x.Checks) != 1 || len(x.Claims) != 1 || len(x.Figures) != 1 || len(s.Instruments) != 1 {
		t.Errorf("judges: %+v", x)
	}
	smoke := mustLoad(t, buffers, func(o *Options) { o.Smoke = true })
	if smoke.Duration != 2*time.Second || smoke.Repetitions != 1 || len(smoke.Points) != 2 || smoke.Points[0].ID != "buffer=0.5" {
		t.Errorf("smoke: %+v", smoke)
	}
}
