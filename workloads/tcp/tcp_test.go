package tcp_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"wirelab/results"
	"wirelab/workloads"
	"wirelab/workloads/rehearse"
	"wirelab/workloads/tcp"
)

// TestMain lets the test binary be its own actor, as wirelab is.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "actor" {
		os.Exit(workloads.RunActor(context.Background(), []workloads.Kind{tcp.Kind()}, os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

// play runs a workload over loopback.
func play(t *testing.T, w *tcp.Workload, window workloads.Window) (rehearse.Result, error) {
	t.Helper()
	w.From, w.To = "a", "b"
	for _, p := range w.Validate() {
		if !p.Warning {
			t.Fatalf("configuration: %v", p)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	return rehearse.Run(ctx, rehearse.Options{Binary: os.Args[0], Kind: "tcp", Workload: w, Dir: t.TempDir(), Seed: 5, Window: window})
}

func config(change func(*tcp.Workload)) *tcp.Workload {
	w := tcp.Kind().New().(*tcp.Workload)
	w.Congestion = "reno" // the one that needs no root on any host
	change(w)
	return w
}

func TestBulk(t *testing.T) {
	t.Parallel()
	w := config(func(w *tcp.Workload) { w.Flows, w.Pacing = 3, 40_000_000 })
	r, err := play(t, w, workloads.Window{Start: 0.5, End: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != results.StatusOK || len(r.Flows) != 3 {
		t.Fatalf("status %s, %d flows, notes %v", r.Status, len(r.Flows), r.Notes)
	}
	// Paced to 40 Mbit/s of wire rate each: more cannot be, however fast the
	// host; a slow host may be below.
	g := r.Values["goodput_bps"]
	if g <= 1e6 || g > 3*40e6*1.05 {
		t.Errorf("goodput %.0f bit/s of three flows paced to 40 Mbit/s each", g)
	}
	var sum float64
	for _, f := range r.Flows {
		sum += f["goodput_bps"]
		if f["rtt_p50_s"] <= 0 || f["cwnd_max_bytes"] <= 0 || f["segments_sent_count"] <= 0 {
			t.Errorf("flow without RTT, window or segments: %v", f)
		}
	}
	if sum < g*0.999 || sum > g*1.001 {
		t.Errorf("flows add up to %.0f bit/s, the total is %.0f", sum, g)
	}
	checkDeclared(t, w, r)
	checkSeries(t, r)
	for _, a := range []string{"w.sender", "w.receiver"} {
		if load := r.Actors[a].WindowCPUSeconds; load <= 0 {
			t.Errorf("%s used %v s of CPU in the window", a, load)
		}
	}
	for _, rec := range r.Actors["w.sender"].Records {
		if rec.Text != nil && rec.Text["congestion"] != "reno" {
			t.Errorf("the kernel used %q", rec.Text["congestion"])
		}
	}
}

// checkDeclared: every value is of a declared metric, and every metric has one.
func checkDeclared(t *testing.T, w *tcp.Workload, r rehearse.Result) {
	t.Helper()
	known := map[string]results.MetricDef{}
	for _, d := range w.Metrics() {
		if d.Unit == "" || d.Definition == "" || d.Source == "" {
			t.Errorf("metric %s is not defined: %+v", d.Name, d)
		}
		if _, twice := known[d.Name]; twice {
			t.Errorf("metric %s is defined twice", d.Name)
		}
		known[d.Name] = d
		switch d.Name {
		case "timeouts_count", "rwnd_limited_ratio", "sndbuf_limited_ratio":
			continue // of newer kernels; of flows that are busy for a jiffy or more
		case "fairness_ratio":
			if w.Arrivals != nil {
				continue
			}
		}
		if _, ok := r.Values[d.Name]; !ok {
			t.Errorf("metric %s is missing", d.Name)
		}
	}
	for name := range r.Values {
		if _, ok := known[name]; !ok {
			t.Errorf("metric %s is not declared", name)
		}
	}
	for _, f := range r.Flows {
		for name := range f {
			if d, ok := known[name]; !ok || !d.PerFlow {
				t.Errorf("flow metric %s is not declared as one", name)
			}
		}
	}
}

// checkSeries: bins are regular, and their mean is the goodput.
func checkSeries(t *testing.T, r rehearse.Result) {
	t.Helper()
	found := map[string]int{}
	var times []float64
	var inWindow float64
	for _, s := range r.Samples {
		found[s.Actor+"/"+s.Metric]++
		if s.Metric == "goodput_bps" && s.Flow == -1 {
			times = append(times, s.Time)
			if s.Time > 0.55 {
				inWindow += s.Value
			}
		}
	}
	for _, want := range []string{"w.receiver/goodput_bps", "w.sender/rtt_s", "w.sender/cwnd_bytes", "w.sender/retransmissions_count"} {
		if found[want] < 10 {
			t.Errorf("%d samples of %s", found[want], want)
		}
	}
	if len(times) != 15 {
		t.Fatalf("%d bins of 100 ms in 1.5 s", len(times))
	}
	for i, at := range times {
		if d := at - float64(i+1)*0.1; d < -1e-9 || d > 1e-9 {
			t.Errorf("bin %d ends at %v", i, at)
		}
	}
	if mean, g := inWindow/10, r.Values["goodput_bps"]; mean < g*0.99 || mean > g*1.01 {
		t.Errorf("bins of the window average %.0f bit/s, the goodput is %.0f", mean, g)
	}
}

func TestBytesEndEarly(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"4", "6"} {
		t.Run("IPv"+version, func(t *testing.T) {
			t.Parallel()
			w := config(func(w *tcp.Workload) {
				w.Flows, w.Bytes, w.IP, w.Nodelay, w.MSS = 4, 3_000_000, version, true, 1000
				w.Receive = map[string]string{"4": "copy", "6": "discard"}[version]
			})
			r, err := play(t, w, workloads.Window{End: 60})
			if err != nil && version == "6" && strings.Contains(err.Error(), "cannot assign") {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			v := r.Values
			if v["received_bytes"] != 12_000_000 || v["completed_count"] != 4 || v["unfinished_count"] != 0 || v["size_bytes"] != 3_000_000 {
				t.Errorf("values %v", v)
			}
			if v["fct_max_s"] <= 0 || v["fct_max_s"] > 30 || v["fct_p50_s"] > v["fct_max_s"] {
				t.Errorf("completion times %v", v)
			}
			// The window ends with the last byte: not at 60 s.
			if g := v["goodput_bps"]; g < 12e6*8/30 {
				t.Errorf("goodput %v", g)
			}
			checkDeclared(t, w, r)
			// 3000 segments of 1000 bytes less 12 of options at least, per flow.
			if n := v["segments_sent_count"]; n < 12_000 {
				t.Errorf("%v segments of at most 1000 bytes carry 12 MB", n)
			}
		})
	}
}

func TestArrivals(t *testing.T) {
	t.Parallel()
	w := config(func(w *tcp.Workload) {
		w.Arrivals = &tcp.Arrivals{Process: "poisson", Rate: 200, Capacity: 1_000_000_000, Sizes: &tcp.Sizes{Distribution: "pareto", Mean: 20_000, Max: 1_000_000}}
	})
	r, err := play(t, w, workloads.Window{Start: 0.5, End: 2})
	if err != nil {
		t.Fatal(err)
	}
	v := r.Values
	// 300 +- 17 arrivals in 1.5 s; a busy host starts some of them late.
	if v["started_count"] < 100 || v["started_count"] > 420 || v["completed_count"] < 0.8*v["started_count"] {
		t.Errorf("started %v, completed %v", v["started_count"], v["completed_count"])
	}
	if v["slowdown_p50_ratio"] < 0.9 || v["slowdown_max_ratio"] < v["slowdown_p50_ratio"] {
		t.Errorf("slowdown %v", v)
	}
	if v["offered_load_bps"] <= 0 || v["goodput_bps"] <= 0 {
		t.Errorf("load %v, goodput %v", v["offered_load_bps"], v["goodput_bps"])
	}
	checkDeclared(t, w, r)
	withFCT := 0
	for _, f := range r.Flows {
		if _, ok := f["fct_s"]; ok {
			withFCT++
		}
	}
	if withFCT != int(v["completed_count"]) {
		t.Errorf("%d flows with a completion time, %v completed", withFCT, v["completed_count"])
	}
}

func TestUnknownCongestionControlIsUnsupported(t *testing.T) {
	t.Parallel()
	w := config(func(w *tcp.Workload) { w.Congestion = "warpspeed" })
	w.From, w.To = "a", "b"
	if p := w.Validate(); len(p) != 1 || !p[0].Warning || !strings.Contains(p[0].Detail, "reno") {
		t.Errorf("the plan says %v, want one doubt that names what there is", p)
	}
	r, err := play(t, w, workloads.Window{End: 0.2})
	a := r.Actors["w.sender"]
	if err == nil || a.Status != results.StatusUnsupported || !strings.Contains(a.Error, `"warpspeed"`) || !strings.Contains(a.Error, "reno") {
		t.Errorf("%v: %s: %s", err, a.Status, a.Error)
	}
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	w := config(func(w *tcp.Workload) { w.Port = l.Addr().(*net.TCPAddr).Port })
	_, err = play(t, w, workloads.Window{End: 0.2})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d of 127.0.0.1 on node b is in use", w.Port)) {
		t.Errorf("error %v", err)
	}
}

// TestThousandFlows: every flow has a record, and reading TCP_INFO stays cheap.
func TestThousandFlows(t *testing.T) {
	t.Parallel()
	w := config(func(w *tcp.Workload) { w.Flows, w.Pacing, w.MSS = 1000, 200_000, 1000 })
	r, err := play(t, w, workloads.Window{Start: 1, End: 3})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Flows) != 1000 {
		t.Fatalf("%d flows", len(r.Flows))
	}
	silent := 0
	for i, f := range r.Flows {
		if _, ok := f["cwnd_mean_bytes"]; !ok {
			t.Errorf("flow %d has no window: %v", i, f)
			break
		}
		if f["goodput_bps"] == 0 {
			silent++
		}
	}
	if silent > len(r.Flows)/2 { // on a busy host some begin late
		t.Errorf("%d of 1000 flows delivered nothing", silent)
	}
	// Not a bar for a busy machine, but ten times the stated cost is a defect.
	if load := r.Values["tcp_info_load_ratio"]; load <= 0 || load > 0.5 {
		t.Errorf("reading TCP_INFO took %.3f of a core", load)
	}
	t.Logf("TCP_INFO took %.4f of a core at %.0f ms", r.Values["tcp_info_load_ratio"], 1e3*r.Values["tcp_info_interval_s"])
}
