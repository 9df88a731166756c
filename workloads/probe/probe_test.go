package probe_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"wirelab/emul/attr"
	"wirelab/results"
	"wirelab/workloads"
	"wirelab/workloads/probe"
	"wirelab/workloads/rehearse"
)

// TestMain lets the test binary be its own actor, as wirelab is.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "actor" {
		os.Exit(workloads.RunActor(context.Background(), []workloads.Kind{probe.PingKind()}, os.Args[2], os.Args[3]))
	}
	os.Exit(m.Run())
}

func ping(change func(*probe.Ping)) *probe.Ping {
	p := probe.PingKind().New().(*probe.Ping)
	p.From, p.To = "a", "b"
	change(p)
	return p
}

func TestPingLoopback(t *testing.T) {
	for _, version := range []string{"4", "6"} {
		t.Run("IPv"+version, func(t *testing.T) {
			t.Parallel()
			p := ping(func(p *probe.Ping) { p.IP, p.Interval = version, 10*time.Millisecond })
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			r, err := rehearse.Run(ctx, rehearse.Options{Binary: os.Args[0], Kind: "ping", Workload: p, Dir: t.TempDir(),
				Window: workloads.Window{Start: 0.2, End: 0.7}})
			actor := r.Actors["w.pinger"]
			if actor.Status == results.StatusUnsupported {
				t.Skip(actor.Error)
			}
			if err != nil && strings.Contains(err.Error(), "cannot assign") || err != nil && strings.Contains(err.Error(), "unreachable") {
				t.Skipf("no IPv%s here: %v", version, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			v := r.Values
			// A busy machine may send fewer in the window, or there those of
			// before it; never more than one per interval of the whole.
			if v["sent_count"] < 5 || v["sent_count"] > 71 || v["received_count"] != v["sent_count"] || v["loss_ratio"] != 0 {
				t.Errorf("counts: %v", v)
			}
			if v["rtt_min_s"] <= 0 || v["rtt_min_s"] > 0.05 || v["rtt_p50_s"] < v["rtt_min_s"] || v["rtt_max_s"] < v["rtt_p99_s"] {
				t.Errorf("round-trip times over loopback: %v", v)
			}
			if v["reordered_count"] != 0 || v["duplicates_count"] != 0 {
				t.Errorf("loopback neither reorders nor duplicates: %v", v)
			}
			declared := map[string]bool{}
			for _, d := range p.Metrics() {
				declared[d.Name] = true
				if _, ok := v[d.Name]; !ok {
					t.Errorf("metric %s is missing", d.Name)
				}
			}
			if len(v) != len(declared) {
				t.Errorf("%d values for %d metrics", len(v), len(declared))
			}
			if n := len(r.Samples); n < int(v["received_count"]) {
				t.Errorf("%d samples of %v replies", n, v["received_count"])
			}
		})
	}
}

func TestPingCount(t *testing.T) {
	t.Parallel()
	p := ping(func(p *probe.Ping) { p.Count, p.Interval, p.Size = 3, time.Millisecond, 1000 })
	r, err := rehearse.Run(t.Context(), rehearse.Options{Binary: os.Args[0], Kind: "ping", Workload: p, Dir: t.TempDir(),
		Window: workloads.Window{End: 20}})
	if r.Actors["w.pinger"].Status == results.StatusUnsupported {
		t.Skip(r.Actors["w.pinger"].Error)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Values["sent_count"] != 3 || r.Values["received_count"] != 3 {
		t.Errorf("values %v", r.Values)
	}
}

func TestPingValidate(t *testing.T) {
	for name, change := range map[string]func(*probe.Ping){
		"to":       func(p *probe.Ping) { p.To = "" },
		"on":       func(p *probe.Ping) { p.On = "a" },
		"interval": func(p *probe.Ping) { p.Interval = 0 },
		"size":     func(p *probe.Ping) { p.Size = 3 },
		"count":    func(p *probe.Ping) { p.Count = -1 },
		"wait":     func(p *probe.Ping) { p.Wait = time.Minute },
		"ip":       func(p *probe.Ping) { p.IP = "5" },
	} {
		problems := ping(change).Validate()
		if len(problems) != 1 {
			t.Errorf("%s: %d problems: %v", name, len(problems), problems)
			continue
		}
		checkProblem(t, problems[0], name)
	}
	if problems := ping(func(*probe.Ping) {}).Validate(); len(problems) > 0 {
		t.Errorf("the defaults are refused: %v", problems)
	}
}

func checkProblem(t *testing.T, p attr.Problem, name string) {
	t.Helper()
	if name != "to" && (len(p.Path) != 1 || p.Path[0] != name) {
		t.Errorf("%s: problem is at %v", name, p.Path)
	}
	if p.Summary == "" || p.Detail == "" || strings.HasSuffix(p.Summary, ".") {
		t.Errorf("%s: %+v", name, p)
	}
}
