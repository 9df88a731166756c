package plan_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"wirelab/emul"
	"wirelab/emul/attr"
	"wirelab/experiments"
	"wirelab/experiments/lang"
	"wirelab/experiments/plan"
	"wirelab/results"
	"wirelab/testbed/topo"
	"wirelab/workloads"
)

var update = flag.Bool("update", false, "write golden files")

// traffic stands for a workload, so that plans do not change with real ones.
type traffic struct {
	workloads.Placement
	Flows      int    `hcl:"flows,optional" default:"1"`
	Congestion string `hcl:"congestion,optional" default:"cubic"`
}

func (w *traffic) Validate() []attr.Problem { return nil }
func (w *traffic) Roles() []workloads.Role  { return nil }
func (w *traffic) Metrics() []results.MetricDef {
	return []results.MetricDef{{Name: "goodput_bps", Unit: "bit/s", Definition: "Bits received.", Source: "receiver", PerFlow: true}}
}
func (w *traffic) Reduce(workloads.Reduction) workloads.Outcome { return workloads.Outcome{} }

var _ workloads.Workload = (*traffic)(nil)

// backend stands for the software backend.
type backend struct{ emul.Backend }

func (backend) Name() string                   { return "software" }
func (backend) Supports(emul.Impairment) error { return nil }

func load(t testing.TB, text string, change ...func(*lang.Options)) *experiments.Experiment {
	t.Helper()
	o := lang.Options{
		FS: fstest.MapFS{"x.hcl": {Data: []byte(text)}}, Host: lang.Host{Cores: 4, Kernel: "6.1.0"},
		Backends: []emul.Backend{backend{}},
		Kinds: lang.Kinds{Topologies: topo.Kinds(), Workloads: []workloads.Kind{
			{Name: "tcp", New: func() workloads.Workload { return &traffic{} }},
		}},
	}
	for _, c := range change {
		c(&o)
	}
	x, _, diags := lang.Load([]string{"x.hcl"}, o)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return x
}

const buffers = `
experiment "buffers" {
  title       = "How large must the buffer be?"
  duration    = "30s"
  warmup      = "5s"
  repetitions = 3
}

variable "flows" {
  default = 16
}

sweep {
  buffer = [0.25, 1, 2]
}

topology "dumbbell" "net" {
  hosts = 2
  bottleneck {
    rate   = "100mbit"
    rtt    = "40ms"
    queue  = bdp("100mbit", "40ms", sweep.buffer)
    jitter = "2ms"
    forward {
      loss = "1%"
    }
    reverse {
      rate = "1gbit"
      queue = "100pkt"
    }
  }
  access {
    delay = "5ms"
  }
}

workload "tcp" "cubic" {
  from  = "left1"
  to    = "right1"
  flows = var.flows / 2
}

workload "tcp" "late" {
  from       = "left2"
  to         = "right2"
  congestion = sweep.buffer > 1 ? "reno" : "bbr"
  start      = "2s"
}

check "busy" {
  condition = result.net.bottleneck.utilization_ratio >= 0.9
}

claim "shared" {
  value     = median(result.late.goodput_bps / result.cubic.goodput_bps)
  condition = value > 0.5
  requires  = host.cores >= 8
}

figure "share" {
  y = ["cubic.goodput_bps", "late.goodput_bps"]
}
`

func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	path := "testdata/" + name
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s (-want +got), write it with -update:\n%s", path, d)
	}
}

func TestGolden(t *testing.T) {
	p := plan.New(load(t, buffers))
	golden(t, "buffers.txt", p.WriteText)
	golden(t, "buffers.json", p.WriteJSON)
	golden(t, "buffers.dot", p.WriteGraph)
	golden(t, "large.txt", plan.New(load(t, dynamicGraph)).WriteText)
	golden(t, "bare.txt", plan.New(load(t, "experiment \"bare\" {\n  duration = \"1s\"\n}\n")).WriteText)
	golden(t, "bare.dot", plan.New(load(t, "experiment \"bare\" {\n  duration = \"1s\"\n}\n")).WriteGraph)
}

// TestOrder wants repetitions outermost, every point once in each, in an order
// that the seed shuffles, and indices that do not depend on it.
func TestOrder(t *testing.T) {
	text := "experiment \"x\" {\n  duration    = \"1s\"\n  repetitions = 4\n}\nsweep {\n  a = range(20)\n}\n"
	x := load(t, text)
	p := plan.New(x)
	if len(p.Runs) != 80 {
		t.Fatalf("%d runs", len(p.Runs))
	}
	var orders []string
	seen := map[int]bool{}
	for r := range 4 {
		var points []int
		for _, run := range p.Runs[r*20 : r*20+20] {
			if run.Repetition != r || run.Setup.Repetition != r || run.Index != run.Point*4+r || seen[run.Index] {
				t.Fatalf("run %+v in repetition %d", run, r)
			}
			seen[run.Index] = true
			points = append(points, run.Point)
		}
		order := cmp.Diff(nil, points)
		if slices.Contains(orders, order) || slices.IsSorted(points) {
			t.Errorf("repetition %d is not shuffled anew: %v", r, points)
		}
		orders = append(orders, order)
	}
	other := uint64(2)
	q := plan.New(load(t, text, func(o *lang.Options) { o.Seed = &other }))
	same := true
	for i := range p.Runs {
		same = same && p.Runs[i].Index == q.Runs[i].Index
	}
	if same || p.Hash == q.Hash {
		t.Error("another seed gives the same plan")
	}
}

// TestHashes: equal files give equal plans; an edit changes the hashes of the
// runs that it touches and of no other.
func TestHashes(t *testing.T) {
	p := plan.New(load(t, buffers))
	again := plan.New(load(t, "# comment\n"+strings.ReplaceAll(buffers, "hosts = 2", "hosts   =   1 + 1")))
	if p.Hash != again.Hash {
		t.Error("the same experiment, laid out differently, has another hash")
	}
	byIndex := func(p *plan.Plan) map[int]string {
		m := map[int]string{}
		for _, r := range p.Runs {
			m[r.Index] = r.Hash
		}
		return m
	}
	edited := plan.New(load(t, strings.ReplaceAll(buffers, "[0.25, 1, 2]", "[0.25, 1, 4]")))
	was, is := byIndex(p), byIndex(edited)
	for i := range was {
		if same := was[i] == is[i]; same != (i < 6) {
			t.Errorf("run %d: same hash %v after the last point was edited", i, same)
		}
	}
	if edited.Hash == p.Hash {
		t.Error("another sweep has the same plan hash")
	}
	if fmtLen := len(was[0]); fmtLen != 64 || was[0] == was[1] {
		t.Errorf("hashes %q and %q", was[0], was[1])
	}
	// Only the facts that the file names count.
	facts := func(cores int, kernel string) string {
		return plan.New(load(t, buffers, func(o *lang.Options) { o.Host = lang.Host{Cores: cores, Kernel: kernel} })).Hash
	}
	if facts(4, "6.1.0") != facts(4, "6.18.5") {
		t.Error("a host fact that nothing refers to changes the plan")
	}
	if facts(4, "6.1.0") == facts(8, "6.1.0") {
		t.Error("host.cores is used but does not change the plan")
	}
}

// TestJSON decodes what scripts read.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	x := load(t, strings.ReplaceAll(buffers, "flows = var.flows / 2", "flows = run.repetition + 1"))
	if err := plan.New(x).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Schema string
		Points []struct {
			ID       string
			Topology struct {
				Links []struct{ Backend, Why string }
			}
			Addresses map[string][]struct{ Link, IPv4, IPv6 string }
		}
		Runs []struct {
			Index, Repetition int
			Setup             *struct {
				Workloads []struct{ Config struct{ Flows int } }
			}
		}
		Claims []struct {
			NotTestable string `json:"not_testable"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Schema != plan.Schema || len(got.Points) != 3 || len(got.Runs) != 9 || got.Points[0].Topology.Links[0].Backend != "software" ||
		len(got.Points[0].Addresses["left1"]) != 1 || got.Claims[0].NotTestable == "" {
		t.Errorf("%+v", got)
	}
	for _, r := range got.Runs {
		if (r.Setup == nil) != (r.Repetition == 0) || r.Setup != nil && r.Setup.Workloads[0].Config.Flows != r.Repetition+1 {
			t.Errorf("run %d of repetition %d: %+v", r.Index, r.Repetition, r.Setup)
		}
	}
}
