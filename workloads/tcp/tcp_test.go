package tcp_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"wirelab/results"
	"wirelab/workloads"
	"wirelab/workloads/tcp"
)

// TestMain lets the test binary be its own actor, as wirelab is.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "actor" {
		os.Exit(workloads.RunActor(context.Background(), []workloads.Kind{tcp.Kind()}, os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// load is one run of a tcp workload over loopback.
type load struct {
	window workloads.Window
	stop   float64 // s
	seed   uint64
}

// outcome is what came of it.
type outcome struct {
	workloads.Outcome
	samples []results.Sample
	records []results.Record
	status  map[string]workloads.Result
}

// play runs both roles as processes, as the runner does.
func play(t *testing.T, w *tcp.Workload, l load) outcome {
	t.Helper()
	w.From, w.To = "a", "a"
	if problems := w.Validate(); len(problems) > 0 {
		t.Fatalf("configuration: %v", problems)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	out := outcome{status: map[string]workloads.Result{}}
	var mu sync.Mutex
	var procs []*workloads.Process
	var endpoints map[string]string
	for _, role := range w.Roles() {
		config, err := json.Marshal(role.Config)
		if err != nil {
			t.Fatal(err)
		}
		p, err := workloads.StartProcess(ctx, (*exec.Cmd).Start, workloads.ProcessOptions{
			Binary: os.Args[0], LogPath: filepath.Join(t.TempDir(), role.Name+".log"),
			Record: func(s results.Sample) {
				mu.Lock()
				defer mu.Unlock()
				out.samples = append(out.samples, s)
			},
			Spec: workloads.Spec{Kind: "tcp", Role: role.Name, Workload: "w", Node: role.Node, Config: config,
				Nodes: map[string][]string{"a": {"127.0.0.1", "::1"}}, Endpoints: endpoints, Seed: l.seed,
				Window: l.window, StopS: l.stop},
		})
		if err != nil {
			t.Fatal(err)
		}
		procs = append(procs, p)
		ready, err := p.WaitReady(ctx)
		if err != nil {
			for _, p := range procs {
				p.Stop(ctx)
				out.status[p.Name()] = p.Result()
			}
			return out
		}
		if role.Server {
			endpoints = ready
		}
	}
	t0 := workloads.Monotonic() + int64(100*time.Millisecond)
	for _, p := range procs {
		if err := p.Start(t0); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range procs {
		select {
		case <-p.Finished():
		case <-ctx.Done():
		}
	}
	for _, p := range procs {
		p.Stop(ctx)
		r := p.Result()
		out.status[p.Name()] = r
		out.records = append(out.records, r.Records...)
	}
	mu.Lock()
	defer mu.Unlock()
	out.Outcome = w.Reduce(workloads.Reduction{Window: l.window, Samples: out.samples, Records: out.records})
	return out
}

func config(change func(*tcp.Workload)) *tcp.Workload {
	w := tcp.Kind().New().(*tcp.Workload)
	change(w)
	return w
}

func TestBulk(t *testing.T) {
	t.Parallel()
	w := config(func(w *tcp.Workload) { w.Flows, w.Congestion, w.Pacing = 3, "reno", 40_000_000 })
	o := play(t, w, load{window: workloads.Window{Start: 0.5, End: 1.5}, stop: 1.5})
	for name, r := range o.status {
		if r.Status != results.StatusOK {
			t.Fatalf("%s: %s: %s", name, r.Status, r.Error)
		}
	}
	if o.Status != results.StatusOK || len(o.Flows) != 3 {
		t.Fatalf("status %s, %d flows, notes %v", o.Status, len(o.Flows), o.Notes)
	}
	// Paced to 40 Mbit/s of wire rate each: more cannot be, however fast the
	// host; a slow host may be below.
	if g := o.Values["goodput_bps"]; g <= 1e6 || g > 3*40e6*1.02 {
		t.Errorf("goodput %.0f bit/s of three flows paced to 40 Mbit/s each", g)
	}
	var sum float64
	for _, f := range o.Flows {
		sum += f["goodput_bps"]
		if f["rtt_p50_s"] <= 0 || f["cwnd_max_bytes"] <= 0 {
			t.Errorf("flow without RTT or window: %v", f)
		}
	}
	if g := o.Values["goodput_bps"]; sum < g*0.999 || sum > g*1.001 {
		t.Errorf("flows add up to %.0f bit/s, the total is %.0f", sum, g)
	}
	known := map[string]bool{}
	for _, d := range w.Metrics() {
		known[d.Name] = true
	}
	for name := range o.Values {
		if !known[name] {
			t.Errorf("metric %s is not declared", name)
		}
	}
	for _, f := range o.Flows {
		for name := range f {
			if !known[name] {
				t.Errorf("flow metric %s is not declared", name)
			}
		}
	}
	found := map[string]int{}
	for _, s := range o.samples {
		found[s.Actor+"/"+s.Metric]++
	}
	for _, want := range []string{"w.receiver/goodput_bps", "w.sender/rtt_s", "w.sender/cwnd_bytes", "w.sender/retransmissions_count"} {
		if found[want] < 10 {
			t.Errorf("%d samples of %s", found[want], want)
		}
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("values %v\nfound %v\nnotes %v\nstatus %+v", o.Values, found, o.Notes, o.status["w.sender"])
	}
}
