// Package resultstest makes up the results of an experiment for tests: two
// congestion controls over a bottleneck, with calibration, counters, time
// series and doubts as a real run would leave them.
//
// Equal options give equal data. Nothing here is measured.
package resultstest

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"wirelab/emul/hist"
	"wirelab/results"
)

// Options shape the made-up experiment; the zero value is the quickstart: two
// buffer sizes and three repetitions.
type Options struct {
	Buffers     []float64
	Repetitions int
	// Flows per workload, 1 when zero.
	Flows int
	// Bare leaves out calibration, counters, events and per-flow values, as on
	// a host without any of them.
	Bare bool
	// Invalid lists run indices that were contended; Failed those that failed.
	Invalid, Failed []int
}

func (o Options) filled() Options {
	if len(o.Buffers) == 0 {
		o.Buffers = []float64{0.5, 1}
	}
	if o.Repetitions == 0 {
		o.Repetitions = 3
	}
	o.Flows = max(o.Flows, 1)
	return o
}

var started = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

const (
	warmup   = 1.0
	duration = 4.0
)

// Experiment makes the manifest and all runs.
func Experiment(opt Options) (*results.Manifest, []*results.Run) {
	opt = opt.filled()
	m := manifest(opt)
	var runs []*results.Run
	for _, buffer := range opt.Buffers {
		for rep := range opt.Repetitions {
			r := run(opt, len(runs), rep, buffer)
			runs = append(runs, r)
			m.Order = append(m.Order, r.Index)
			m.Runs = append(m.Runs, results.RunStatus{
				Index: r.Index, Point: r.Point.ID, Repetition: rep, Status: r.Status, Valid: r.Valid,
				Reasons: r.Reasons, Dir: "runs/" + r.DirName(),
			})
		}
	}
	m.Topology = diagram(runs[0], opt)
	return m, runs
}

func has(list []int, i int) bool {
	for _, v := range list {
		if v == i {
			return true
		}
	}
	return false
}

func run(opt Options, index, rep int, buffer float64) *results.Run {
	rng := rand.New(rand.NewPCG(uint64(index)+1, 42))
	text := results.ExactFloat(buffer)
	r := &results.Run{
		Index: index, Repetition: rep, Seed: uint64(rep) + 1, Attempts: 1, Status: results.StatusOK, Valid: true,
		Point:   results.Point{ID: "buffer=" + text, Sweep: []results.SweepValue{{Name: "buffer", Text: text, Number: &buffer}}},
		Started: started.Add(time.Duration(index) * 7 * time.Second), Duration: 6300 * time.Millisecond,
		PlanHash: fmt.Sprintf("%064x", index+1),
	}
	if has(opt.Failed, index) {
		r.Status, r.Valid, r.Error = results.StatusFailed, false, "reno.receiver: bind 10.0.0.6:5201: address already in use"
		return r
	}
	if has(opt.Invalid, index) {
		r.Valid, r.Attempts = false, 3
		r.Reasons = []string{"host contended: steal 7.2 % of core 1, limit 5 %"}
	}
	share := 0.5 + 0.16/(1+buffer) + rng.NormFloat64()*0.012
	total := 94.1e6 * (1 - 0.05*math.Exp(-3*buffer)) * (1 + rng.NormFloat64()*0.002)
	queue := 0.040 * buffer
	add := func(metric string, v float64, unit string) {
		r.Values = append(r.Values, results.Value{Metric: metric, Value: v, Unit: unit})
	}
	for i, name := range []string{"cubic", "reno"} {
		own := share
		if i == 1 {
			own = 1 - share
		}
		add(name+".goodput_bps", total*own, "bit/s")
		add(name+".rtt_p50_s", 0.0402+queue*(0.62+0.01*rng.Float64()), "s")
		add(name+".rtt_p99_s", 0.0402+queue*(0.97+0.01*rng.Float64()), "s")
		add(name+".retransmissions_count", math.Round(30/buffer+6*rng.Float64()), "segments")
	}
	add("net.bottleneck.utilization_ratio", total*1.041/100e6, "1")
	if opt.Bare {
		return r
	}
	add("net.bottleneck.queue_drops_count", math.Round(60/buffer+9*rng.Float64()), "packets")
	add("net.bottleneck.backlog_mean_bytes", 500e3*buffer*0.6, "bytes")
	add("net.bottleneck.departure_error_p50_s", 21e-6+4e-6*rng.Float64(), "s")
	add("net.bottleneck.departure_error_p99_s", 74e-6+20e-6*rng.Float64(), "s")
	add("net.bottleneck.deadline_misses_count", math.Round(2*rng.Float64()), "packets")
	add("host.load_max_ratio", 0.41+0.05*rng.Float64(), "1")
	add("host.steal_max_ratio", 0.002*rng.Float64(), "1")
	details(r, opt, rng, queue, total, buffer)
	return r
}

// details adds what stands beside the values in a run's record.
func details(r *results.Run, opt Options, rng *rand.Rand, queue, total, buffer float64) {
	r.Flows = map[string][]map[string]float64{}
	for _, name := range []string{"cubic", "reno"} {
		v, _ := r.Lookup(name + ".goodput_bps")
		for range opt.Flows {
			r.Flows[name] = append(r.Flows[name], map[string]float64{"goodput_bps": v.Value / float64(opt.Flows)})
		}
		h := &hist.Histogram{}
		for range 4000 {
			h.Record(int64((0.0402 + queue*math.Sqrt(rng.Float64())) * 1e9))
		}
		r.Records = append(r.Records, results.Record{Actor: name, Role: "sender", Flow: -1, Name: "rtt_s", Hist: h})
		for _, role := range []string{"receiver", "sender"} {
			r.Actors = append(r.Actors, results.ActorRecord{
				Name: name + "." + role, Node: map[string]string{"cubic.sender": "left1", "cubic.receiver": "right1", "reno.sender": "left2", "reno.receiver": "right2"}[name+"."+role],
				Status: results.StatusOK, CPUSeconds: 0.21, MaxCoreLoad: 0.05, Log: "actors/" + name + "." + role + ".log",
			})
		}
	}
	r.Links = links(buffer, rng)
	r.Events = []results.EventStatus{
		{Instrument: "cache", Event: "cache-misses", Status: "not_supported"},
		{Instrument: "cache", Event: "context-switches", Status: "ok", RunningRatio: 1},
	}
	r.Checks = []results.CheckResult{
		{Run: r.Index, Name: "every drop is the queue's", Pass: true},
		{Run: r.Index, Name: "the bottleneck is busy", Pass: total*1.041/100e6 > 0.97, Message: fmt.Sprintf("Utilization was %.2f.", total*1.041/100e6)},
	}
	if r.Checks[1].Pass {
		r.Checks[1].Message = ""
	}
	if r.Index == 1 {
		r.Notes = []string{"cubic.sender is generator-bound: its busiest thread used 97 % of a core"}
	}
	r.Files = []results.File{{Name: "samples.parquet", SHA256: fmt.Sprintf("%064x", 0xabcdef+r.Index), Bytes: 48213}}
}

func links(buffer float64, rng *rand.Rand) []results.LinkRecord {
	list := []results.LinkRecord{{
		Name: "net.bottleneck", Between: [2]string{"r1", "r2"}, Backend: "software", Why: "the kernel has no netem", Mode: "default", Unit: "segment",
		Forward: results.DirectionAsked{Text: fmt.Sprintf("100 Mbit/s, 20 ms, queue %.0f B drop-tail", 500e3*buffer)},
		Reverse: results.DirectionAsked{Text: fmt.Sprintf("100 Mbit/s, 20 ms, queue %.0f B drop-tail", 500e3*buffer)},
		Calibration: &results.Calibration{
			RTTAskedS: 0.04, RTTMeasuredS: 0.04006 + 2e-5*rng.Float64(), RTTToleranceS: 0.0008,
			ForwardAskedBPS: 100e6, ForwardBPS: 99.98e6, ReverseAskedBPS: 100e6, ReverseBPS: 100.01e6,
			RateToleranceBPS: 2e6, ReverseToleranceB: 2e6, OK: true, DurationS: 0.61,
		},
	}}
	for _, l := range [][3]string{{"left1", "left1", "r1"}, {"left2", "left2", "r1"}, {"right1", "r2", "right1"}, {"right2", "r2", "right2"}} {
		list = append(list, results.LinkRecord{Name: "net." + l[0], Between: [2]string{l[1], l[2]}, Backend: "none", Why: "no impairment"})
	}
	return list
}

func diagram(r *results.Run, opt Options) *results.Diagram {
	d := &results.Diagram{Links: r.Links}
	if len(d.Links) == 0 {
		d.Links = links(opt.Buffers[0], rand.New(rand.NewPCG(1, 1)))
		for i := range d.Links {
			d.Links[i].Calibration = nil
		}
	}
	for i, n := range []string{"left1", "left2", "r1", "r2", "right1", "right2"} {
		kind := "host"
		if n[0] == 'r' && len(n) == 2 {
			kind = "router"
		}
		d.Nodes = append(d.Nodes, results.DiagramNode{Name: n, Kind: kind, Addresses: []string{fmt.Sprintf("10.0.%d.2", i)}})
	}
	return d
}

// Samples makes up the time series of a run: smoothed RTT and goodput of every
// flow, and the backlog of the bottleneck.
func Samples(opt Options) func(r *results.Run) iter.Seq2[results.Sample, error] {
	opt = opt.filled()
	return func(r *results.Run) iter.Seq2[results.Sample, error] {
		return func(yield func(results.Sample, error) bool) {
			if r.Status == results.StatusFailed {
				return
			}
			buffer := *r.Point.Sweep[0].Number
			rng := rand.New(rand.NewPCG(uint64(r.Index), 5))
			period := 0.7 + 0.9*buffer
			for i := range int((warmup + duration) * 100) {
				t := float64(i) / 100
				fill := buffer * (0.5 + 0.5*math.Mod(t/period+0.13*float64(r.Repetition), 1))
				fill *= min(1, t/0.3)
				rows := []results.Sample{{Actor: "net.bottleneck.forward", Flow: -1, Metric: "backlog_bytes", Time: t, Value: 500e3 * fill}}
				for f := range opt.Flows {
					for _, name := range []string{"cubic", "reno"} {
						rows = append(rows,
							results.Sample{Actor: name + ".sender", Flow: int32(f), Metric: "rtt_s", Time: t, Value: 0.04 + 0.04*fill + 0.0004*rng.NormFloat64()},
							results.Sample{Actor: name + ".receiver", Flow: int32(f), Metric: "goodput_bps", Time: t, Value: (47e6 + 4e6*rng.NormFloat64()) / float64(opt.Flows)})
					}
				}
				for _, s := range rows {
					if !yield(s, nil) {
						return
					}
				}
			}
		}
	}
}
