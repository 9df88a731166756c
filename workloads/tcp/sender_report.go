package tcp

import (
	"math"
	"slices"

	"wirelab/emul/hist"
	"wirelab/workloads"
)

// tally is what the sender's kernel said of ended flows.
type tally struct {
	flows  int // all of them
	inside int // of those, flows that lived in the window
	sum    counters
	cwnd   mean
	rtts   []uint32 // smoothed RTT in us, all readings in the window
	minRTT uint32   // us, 0 before any
}

// add books a flow that has ended.
func (t *tally) add(o *outgoing, a workloads.Activity) {
	t.flows++
	if !o.counts() {
		return
	}
	t.inside++
	t.sum.add(o.counted(a))
	t.cwnd.sum += o.cwnd.sum
	t.cwnd.n += o.cwnd.n
	t.cwnd.max = max(t.cwnd.max, o.cwnd.max)
	t.rtts = append(t.rtts, o.rtts...)
	if m := o.last.minRTT; m > 0 && (t.minRTT == 0 || m < t.minRTT) {
		t.minRTT = m
	}
}

// finish reports each flow and returns the totals and the histogram of the
// smoothed RTT; run has returned and every flow was removed.
func (s *sampler) finish() (map[string]float64, *hist.Histogram) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) <= maxFlowRecords {
		slices.SortFunc(s.kept, func(a, b *outgoing) int { return int(a.number) - int(b.number) })
		for _, o := range s.kept {
			if o.counts() {
				s.env.Summary(o.number, o.values(s.activity), nil)
			}
		}
	}
	t, h := &s.total, &hist.Histogram{}
	values := map[string]float64{"flows_count": float64(t.flows), "tcp_info_cpu_s": float64(s.cpuNS) / 1e9}
	if t.inside > 0 {
		t.sum.put(values)
		putCwnd(values, t.cwnd)
		putRTT(values, t.rtts, t.minRTT)
	}
	for _, us := range t.rtts {
		h.Record(int64(us) * 1000)
	}
	if s.lasted > 0 {
		values["tcp_info_load_ratio"] = float64(s.cpuNS) / float64(s.lasted)
	}
	if s.ticks > 0 {
		values["tcp_info_interval_s"] = float64(s.lasted) / 1e9 / float64(s.ticks)
	}
	return values, h
}

// counts tells whether anything is known of the flow in the window.
func (o *outgoing) counts() bool { return !o.outside && o.last.length > 0 }

// values are the flow's own metrics.
func (o *outgoing) values(a workloads.Activity) map[string]float64 {
	values := make(map[string]float64)
	c := o.counted(a)
	c.put(values)
	putRTT(values, o.rtts, o.last.minRTT)
	putCwnd(values, o.cwnd)
	return values
}

func putCwnd(into map[string]float64, c mean) {
	if c.n > 0 {
		into["cwnd_mean_bytes"] = c.sum / float64(c.n)
		into["cwnd_max_bytes"] = c.max
	}
}

// putRTT stores statistics of smoothed RTTs in us, which it sorts, and the
// kernel's own minimum.
func putRTT(into map[string]float64, us []uint32, least uint32) {
	if least > 0 && least < math.MaxUint32 {
		into["rtt_min_s"] = float64(least) / 1e6
	}
	if len(us) == 0 {
		return
	}
	slices.Sort(us)
	at := func(q float64) float64 {
		i := int(math.Ceil(q*float64(len(us)))) - 1
		return float64(us[min(max(i, 0), len(us)-1)]) / 1e6
	}
	var sum float64
	for _, v := range us {
		sum += float64(v)
	}
	into["rtt_mean_s"] = sum / float64(len(us)) / 1e6
	into["rtt_p50_s"], into["rtt_p95_s"], into["rtt_p99_s"] = at(0.50), at(0.95), at(0.99)
	into["rtt_max_s"] = float64(us[len(us)-1]) / 1e6
}
