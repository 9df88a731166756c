package tcp

import (
	"context"
	"slices"

	"wirelab/emul/hist"
	"wirelab/workloads"
)

// maxFlowRecords bounds the flows that are reported one by one; of more, only
// the distributions are.
const maxFlowRecords = 2000

// reportBins reports the goodput of each bin soon after the bin's end, or at the
// end of ctx.
func (r *receiver) reportBins(ctx context.Context) {
	perFlow := 0 // next per-flow bin to report
	for i := range r.total.bytes {
		end := r.total.end(i)
		if end > r.end {
			break // cut off by the end of the load: no full bin
		}
		if workloads.SleepUntil(ctx, end+int64(binDelay)) != nil && end > r.env.Now() {
			return
		}
		r.env.Sample(end, -1, workloads.Field{Name: "goodput_bps", Value: r.total.rate(i)})
		if r.flowWidth == 0 || r.activity.T0+int64(perFlow+1)*r.flowWidth > end {
			continue
		}
		for _, f := range r.sorted() {
			r.env.Sample(f.bins.end(perFlow), int32(f.flow), workloads.Field{Name: "goodput_bps", Value: f.bins.rate(perFlow)})
		}
		perFlow++
	}
}

// sorted returns the flows so far by number.
func (r *receiver) sorted() []*incoming {
	r.mu.Lock()
	flows := slices.Clone(r.flows)
	r.mu.Unlock()
	slices.SortStableFunc(flows, func(a, b *incoming) int { return int(a.flow) - int(b.flow) })
	return flows
}

// summarise reports what the flows came to.
func (r *receiver) summarise() {
	flows := r.sorted()
	ideal := r.ideal(flows)
	var window, all, last int64
	var fcts, slowdowns []float64
	fctHist, slowHist := &hist.Histogram{}, &hist.Histogram{}
	completed, counted := 0, 0
	var sizes float64
	for _, f := range flows {
		window += f.window.Load()
		all += f.bytes.Load()
		values := map[string]float64{"window_bytes": float64(f.window.Load()), "received_bytes": float64(f.bytes.Load())}
		done := f.doneNS.Load()
		if done > 0 {
			last = max(last, done)
			values["completed_s"] = float64(done-r.activity.T0) / 1e9
		}
		if r.counts(f) {
			counted++
			sizes += float64(f.size)
			values["size_bytes"] = float64(f.size)
			if done > 0 {
				completed++
				fct := done - f.startNS
				fcts = append(fcts, float64(fct)/1e9)
				fctHist.Record(fct)
				values["fct_s"] = float64(fct) / 1e9
				if s, ok := ideal.slowdown(fct, f.size); ok {
					slowdowns = append(slowdowns, s)
					slowHist.Record(int64(s * 1e9))
					values["slowdown_ratio"] = s
				}
			}
		}
		if len(flows) <= maxFlowRecords && (r.w.Arrivals == nil || r.counts(f) && done > 0) {
			r.env.Summary(int32(f.flow), values, nil)
		}
	}
	total := map[string]float64{
		"window_bytes": float64(window), "received_bytes": float64(all),
		"accepted_count": float64(len(flows)), "completed_count": float64(completed),
	}
	if last > 0 {
		total["last_completion_s"] = float64(last-r.activity.T0) / 1e9
	}
	if counted > 0 {
		total["size_bytes"] = sizes / float64(counted)
	}
	addStatistics(total, "fct", "s", fcts)
	addStatistics(total, "slowdown", "ratio", slowdowns)
	r.env.Summary(-1, total, nil)
	if fctHist.Count() > 0 {
		r.env.Hist("fct_s", -1, fctHist)
	}
	if slowHist.Count() > 0 {
		r.env.Hist("slowdown_ratio", -1, slowHist)
	}
}

// counts tells whether a flow's completion is measured: with arrivals the flows
// that started in the window, else every flow with a size.
func (r *receiver) counts(f *incoming) bool {
	if f.size == 0 {
		return false
	}
	if r.w.Arrivals == nil {
		return true
	}
	return f.startNS >= r.activity.WindowBegin && f.startNS < r.activity.WindowEnd
}

// ideal is what a flow alone on the path would take.
type ideal struct {
	rttNS float64
	rate  float64 // bit/s; 0 where not given
}

// ideal takes the capacity that the author gave, and the base RTT given or else
// the shortest that any connection's handshake showed.
func (r *receiver) ideal(flows []*incoming) ideal {
	a := r.w.Arrivals
	if a == nil {
		return ideal{}
	}
	i := ideal{rttNS: float64(a.BaseRTT), rate: float64(a.Capacity)}
	if i.rttNS == 0 {
		for _, f := range flows {
			if us := f.minRTT.Load(); us > 0 && (i.rttNS == 0 || float64(us)*1e3 < i.rttNS) {
				i.rttNS = float64(us) * 1e3
			}
		}
	}
	return i
}

// slowdown is a completion time in ns as a multiple of the ideal one: one RTT
// for the handshake, half of one for the data's way, and the size at the
// path's capacity.
func (i ideal) slowdown(fctNS, size int64) (float64, bool) {
	if i.rate == 0 || i.rttNS == 0 {
		return 0, false
	}
	best := 1.5*i.rttNS + float64(size)*8e9/i.rate
	return float64(fctNS) / best, true
}
