package tcp

import (
	"math"
	"slices"

	"wirelab/emul/hist"
)

// totals are what the sender found over all flows.
type totals struct {
	values map[string]float64
	rtt    *hist.Histogram // smoothed RTT, ns
}

// finish reports each flow and returns the totals.
func (s *sampler) finish() totals {
	flows := s.flows()
	t := totals{values: make(map[string]float64), rtt: &hist.Histogram{}}
	var sum counters
	var cwnd mean
	var rtts []uint32
	minRTT := uint32(math.MaxUint32)
	inside := 0
	for _, o := range flows {
		if o.outside || o.last.length == 0 {
			continue
		}
		inside++
		c := o.counted(s.activity)
		sum.add(c)
		cwnd.sum += o.cwnd.sum
		cwnd.n += o.cwnd.n
		cwnd.max = max(cwnd.max, o.cwnd.max)
		rtts = append(rtts, o.rtts...)
		if o.last.minRTT > 0 {
			minRTT = min(minRTT, o.last.minRTT)
		}
		if s.w.Arrivals == nil && len(flows) <= maxFlowRecords {
			values := make(map[string]float64)
			c.put(values)
			putRTT(values, o.rtts, o.last.minRTT)
			putCwnd(values, o.cwnd)
			s.env.Summary(o.number, values, nil)
		}
	}
	if inside > 0 {
		sum.put(t.values)
		putCwnd(t.values, cwnd)
		putRTT(t.values, rtts, minRTT)
	}
	for _, us := range rtts {
		t.rtt.Record(int64(us) * 1000)
	}
	t.values["flows_count"] = float64(len(flows))
	t.values["tcp_info_cpu_s"] = float64(s.cpuNS) / 1e9
	if s.lasted > 0 {
		t.values["tcp_info_load_ratio"] = float64(s.cpuNS) / float64(s.lasted)
	}
	if s.ticks > 0 {
		t.values["tcp_info_interval_s"] = float64(s.lasted) / 1e9 / float64(s.ticks)
	}
	return t
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
