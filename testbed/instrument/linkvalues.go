package instrument

import (
	"slices"

	"wirelab/emul"
	"wirelab/emul/hist"
	"wirelab/emul/unit"
	"wirelab/results"
)

// carriedMetrics exist for every link and direction.
var carriedMetrics = []results.MetricDef{
	{Name: "throughput_bps", Unit: "bit/s", Definition: "Bits of Ethernet frames that left the link in the window, per second.", Source: "link counters"},
	{Name: "packets_in_count", Unit: "packets", Definition: "Packets handed to the link: MTU-sized segments on an emulated link; on a bare one what its devices count, a GSO super-packet once.", Source: "link counters"},
	{Name: "packets_out_count", Unit: "packets", Definition: "Packets that the link delivered.", Source: "link counters"},
	{Name: "bytes_in_bytes", Unit: "bytes", Definition: "Bytes of Ethernet frames handed to the link.", Source: "link counters"},
	{Name: "bytes_out_bytes", Unit: "bytes", Definition: "Bytes of Ethernet frames that the link delivered.", Source: "link counters"},
	{Name: "queue_drops_count", Unit: "packets", Definition: "Packets dropped because the queue was full; on a bare link those that its devices dropped.", Source: "link counters"},
	{Name: "queue_drop_ratio", Unit: "1", Definition: "queue_drops_count over packets_in_count.", Source: "link counters"},
}

// emulatedMetrics exist where a backend carries the packets.
var emulatedMetrics = []results.MetricDef{
	{Name: "loss_drops_count", Unit: "packets", Definition: "Packets dropped by the loss stage.", Source: "link counters"},
	{Name: "loss_ratio", Unit: "1", Definition: "loss_drops_count over the packets that reached the loss stage: lost or delivered.", Source: "RFC 7680, of the loss stage alone"},
	{Name: "overload_drops_count", Unit: "packets", Definition: "Packets that the emulator lost though no impairment asked for it; any makes the run invalid.", Source: "link counters"},
	{Name: "departure_error_p50_s", Unit: "s", Definition: "Median of how late packets were released after they were due.", Source: "backend's histogram"},
	{Name: "departure_error_p99_s", Unit: "s", Definition: "99th percentile of how late packets were released after they were due.", Source: "backend's histogram"},
	{Name: "departure_error_max_s", Unit: "s", Definition: "Latest release of a packet after it was due (within 1/64 where an earlier one was later still).", Source: "backend's histogram"},
	{Name: "deadline_misses_count", Unit: "packets", Definition: "Packets released more than 1 ms after they were due.", Source: "link counters"},
}

// limitedMetrics exist where the rate is limited.
var limitedMetrics = []results.MetricDef{
	{Name: "utilization_ratio", Unit: "1", Definition: "Throughput over the link's rate; what the loss stage drops has used the rate but is not counted.", Source: "link counters"},
	{Name: "backlog_mean_bytes", Unit: "bytes", Definition: "Mean of the bytes waiting in the queue, as sampled.", Source: "link counters, sampled"},
	{Name: "backlog_p99_bytes", Unit: "bytes", Definition: "99th percentile of the bytes waiting in the queue, as sampled.", Source: "link counters, sampled"},
	{Name: "backlog_max_bytes", Unit: "bytes", Definition: "Largest sample of the bytes waiting in the queue.", Source: "link counters, sampled"},
	{Name: "queueing_delay_p99_s", Unit: "s", Definition: "backlog_p99_bytes divided by the link's rate.", Source: "link counters, sampled"},
}

// LinkMetrics lists the metrics of one direction of an emulated link;
// rateLimited adds those of its rate and queue.
func LinkMetrics(rateLimited bool) []results.MetricDef {
	defs := slices.Concat(carriedMetrics, emulatedMetrics)
	if rateLimited {
		defs = append(defs, limitedMetrics...)
	}
	return defs
}

// BareLinkMetrics lists the metrics of one direction of a bare veth pair.
func BareLinkMetrics() []results.MetricDef { return slices.Clone(carriedMetrics) }

// LinkValues turns the counters of one direction at both ends of a window into
// the metrics of [LinkMetrics]. Rate is 0 where none limits; backlog holds the
// samples in bytes, may be empty. What has no value (a ratio of nothing, a
// histogram without entries) is absent.
func LinkValues(start, end emul.DirectionCounters, rate unit.Rate, windowSeconds float64, backlog []int64) map[string]float64 {
	v := carriedValues(start, end, windowSeconds)
	lost, out := diff(start.LossDrops, end.LossDrops), diff(start.PacketsOut, end.PacketsOut)
	v["loss_drops_count"] = lost
	if lost+out > 0 {
		v["loss_ratio"] = lost / (lost + out)
	}
	v["overload_drops_count"] = diff(start.OverloadDrops, end.OverloadDrops)
	v["deadline_misses_count"] = diff(start.DeadlineMisses, end.DeadlineMisses)
	if h := departures(start, end); h.Count() > 0 {
		v["departure_error_p50_s"] = float64(h.Quantile(0.50)) / 1e9
		v["departure_error_p99_s"] = float64(h.Quantile(0.99)) / 1e9
		v["departure_error_max_s"] = float64(h.Max()) / 1e9
	}
	if rate <= 0 {
		return v
	}
	if bps, ok := v["throughput_bps"]; ok {
		v["utilization_ratio"] = bps / float64(rate)
	}
	if len(backlog) > 0 {
		sorted := slices.Sorted(slices.Values(backlog))
		var sum float64
		for _, b := range sorted {
			sum += float64(b)
		}
		p99 := float64(quantile(sorted, 0.99))
		v["backlog_mean_bytes"] = sum / float64(len(sorted))
		v["backlog_p99_bytes"] = p99
		v["backlog_max_bytes"] = float64(sorted[len(sorted)-1])
		v["queueing_delay_p99_s"] = p99 * 8 / float64(rate)
	}
	return v
}

// carriedValues are the values of carriedMetrics.
func carriedValues(start, end emul.DirectionCounters, windowSeconds float64) map[string]float64 {
	in, bytesOut := diff(start.PacketsIn, end.PacketsIn), diff(start.BytesOut, end.BytesOut)
	drops := diff(start.QueueDrops, end.QueueDrops)
	v := map[string]float64{
		"packets_in_count":  in,
		"packets_out_count": diff(start.PacketsOut, end.PacketsOut),
		"bytes_in_bytes":    diff(start.BytesIn, end.BytesIn),
		"bytes_out_bytes":   bytesOut,
		"queue_drops_count": drops,
	}
	if windowSeconds > 0 {
		v["throughput_bps"] = bytesOut * 8 / windowSeconds
	}
	if in > 0 {
		v["queue_drop_ratio"] = drops / in
	}
	return v
}

// departures is the histogram of what was released between two readings.
func departures(start, end emul.DirectionCounters) *hist.Histogram {
	h := new(hist.Histogram)
	h.Merge(end.DepartureError)
	h.Sub(start.DepartureError)
	return h
}

// diff is the growth of a counter, 0 if it was reset.
func diff(from, to uint64) float64 {
	if to < from {
		return 0
	}
	return float64(to - from)
}

// quantile is the nearest-rank quantile of sorted values; it needs one.
func quantile[T int64 | float64](sorted []T, q float64) T {
	rank := int(q*float64(len(sorted)) + 0.9999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}
