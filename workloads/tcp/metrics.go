package tcp

import "wirelab/results"

const (
	sourceInfo   = "struct tcp_info (Linux)"
	sourceWindow = "receiver"
)

// bulkMetrics exist for every tcp workload. With arrivals a flow is short, and
// only its completion is kept: flows[*] are those that completed.
var bulkMetrics = []results.MetricDef{
	{Name: "goodput_bps", Unit: "bit/s", PerFlow: true, Source: sourceWindow,
		Definition: "Payload that the receiver's socket gave to the application in the measurement window, divided by the window's length. " +
			"With bytes, the window ends with the last flow's last byte."},
	{Name: "received_bytes", Unit: "bytes", PerFlow: true, Source: sourceWindow,
		Definition: "Payload received in the measurement window."},
	{Name: "fairness_ratio", Unit: "1", Source: "Jain's index, RFC 5166 section 2.3",
		Definition: "Jain's fairness index of the flows' goodput: 1 when all are equal, 1/n when one flow has everything. Not given with arrivals."},
	{Name: "started_count", Unit: "flows", Source: "sender",
		Definition: "Flows opened; with arrivals, in the measurement window."},
	{Name: "failed_count", Unit: "flows", Source: "sender",
		Definition: "Flows that could not be opened, or broke before their end."},
	{Name: "retransmissions_count", Unit: "segments", PerFlow: true, Source: sourceInfo + ", tcpi_total_retrans",
		Definition: "Segments retransmitted in the measurement window, those that were not needed included."},
	{Name: "segments_sent_count", Unit: "segments", PerFlow: true, Source: sourceInfo + ", tcpi_data_segs_out (RFC 4898)",
		Definition: "Segments with payload sent in the measurement window, retransmissions included."},
	{Name: "retransmission_ratio", Unit: "1", PerFlow: true, Source: sourceInfo,
		Definition: "retransmissions_count divided by segments_sent_count."},
	{Name: "spurious_retransmissions_count", Unit: "segments", PerFlow: true, Source: sourceInfo + ", tcpi_dsack_dups (RFC 2883)",
		Definition: "Duplicates that the receiver reported by DSACK in the measurement window: retransmissions that were not needed."},
	{Name: "timeouts_count", Unit: "1", PerFlow: true, Source: sourceInfo + ", tcpi_total_rto (Linux 6.7)",
		Definition: "Retransmission timeouts in the measurement window (RFC 6298). Missing on older kernels."},
	{Name: "reorderings_count", Unit: "1", PerFlow: true, Source: sourceInfo + ", tcpi_reord_seen",
		Definition: "Times the sender noticed reordering in the measurement window."},
	{Name: "ce_marks_count", Unit: "segments", PerFlow: true, Source: sourceInfo + ", tcpi_delivered_ce (RFC 3168)",
		Definition: "Segments acknowledged with an ECN mark in the measurement window."},
	{Name: "rtt_min_s", Unit: "s", PerFlow: true, Source: sourceInfo + ", tcpi_min_rtt",
		Definition: "Smallest round-trip time the kernel saw (within its own 5 minutes, warm-up included)."},
	{Name: "rtt_mean_s", Unit: "s", PerFlow: true, Source: sourceInfo + ", tcpi_rtt",
		Definition: "Mean of the smoothed round-trip time (RFC 6298), read at regular intervals in the measurement window."},
	{Name: "rtt_p50_s", Unit: "s", PerFlow: true, Source: sourceInfo + ", tcpi_rtt",
		Definition: "Median of the smoothed round-trip time's readings."},
	{Name: "rtt_p95_s", Unit: "s", PerFlow: true, Source: sourceInfo + ", tcpi_rtt",
		Definition: "95th percentile of the smoothed round-trip time's readings."},
	{Name: "rtt_p99_s", Unit: "s", PerFlow: true, Source: sourceInfo + ", tcpi_rtt",
		Definition: "99th percentile of the smoothed round-trip time's readings."},
	{Name: "rtt_max_s", Unit: "s", PerFlow: true, Source: sourceInfo + ", tcpi_rtt",
		Definition: "Largest reading of the smoothed round-trip time."},
	{Name: "cwnd_mean_bytes", Unit: "bytes", PerFlow: true, Source: sourceInfo + ", tcpi_snd_cwnd x tcpi_snd_mss",
		Definition: "Mean congestion window of a flow, over the readings in the measurement window."},
	{Name: "cwnd_max_bytes", Unit: "bytes", PerFlow: true, Source: sourceInfo + ", tcpi_snd_cwnd x tcpi_snd_mss",
		Definition: "Largest reading of the congestion window."},
	{Name: "busy_ratio", Unit: "1", PerFlow: true, Source: sourceInfo + ", tcpi_busy_time (RFC 4898)",
		Definition: "Share of a flow's time in the measurement window with data sent and not yet acknowledged. The kernel counts it, as the two shares below, in ticks of some milliseconds: of short flows they say nothing."},
	{Name: "rwnd_limited_ratio", Unit: "1", PerFlow: true, Source: sourceInfo + ", tcpi_rwnd_limited",
		Definition: "Share of the busy time in which the receiver's window held the sender back."},
	{Name: "sndbuf_limited_ratio", Unit: "1", PerFlow: true, Source: sourceInfo + ", tcpi_sndbuf_limited",
		Definition: "Share of the busy time in which the send buffer held the sender back."},
	{Name: "sender_cpu_s", Unit: "s", Source: "/proc/PID/task/TID/schedstat",
		Definition: "CPU time of the sending process in the measurement window, user and system."},
	{Name: "receiver_cpu_s", Unit: "s", Source: "/proc/PID/task/TID/schedstat",
		Definition: "CPU time of the receiving process in the measurement window, user and system."},
	{Name: "tcp_info_cpu_s", Unit: "s", Source: "CLOCK_THREAD_CPUTIME_ID",
		Definition: "CPU time spent reading TCP_INFO, over the whole load."},
	{Name: "tcp_info_load_ratio", Unit: "1", Source: "CLOCK_THREAD_CPUTIME_ID",
		Definition: "tcp_info_cpu_s as a share of one core."},
	{Name: "tcp_info_interval_s", Unit: "s", Source: "sender",
		Definition: "Mean time between two readings of a flow's TCP_INFO: info_interval, times one for every 50 flows begun."},
}

// sizedMetrics exist where flows have a size: with bytes or arrivals.
var sizedMetrics = []results.MetricDef{
	{Name: "completed_count", Unit: "flows", Source: sourceWindow,
		Definition: "Flows whose last byte was received before the end of the load; with arrivals, of those that started in the measurement window."},
	{Name: "unfinished_count", Unit: "flows", Source: "started_count - completed_count",
		Definition: "Flows started and not completed: the completion times do not know them, and are too small when there are many."},
	{Name: "fct_s", Unit: "s", PerFlow: true, Source: "RFC 5166 section 2.1.1",
		Definition: "Mean flow completion time: from just before connect to the receiver's reading of the last byte, handshake included."},
	{Name: "fct_mean_s", Unit: "s", Source: "RFC 5166 section 2.1.1", Definition: "Mean flow completion time; the same as fct_s."},
	{Name: "fct_p50_s", Unit: "s", Source: "RFC 5166 section 2.1.1", Definition: "Median flow completion time."},
	{Name: "fct_p95_s", Unit: "s", Source: "RFC 5166 section 2.1.1", Definition: "95th percentile of the flow completion time."},
	{Name: "fct_p99_s", Unit: "s", Source: "RFC 5166 section 2.1.1", Definition: "99th percentile of the flow completion time."},
	{Name: "fct_max_s", Unit: "s", Source: "RFC 5166 section 2.1.1", Definition: "Longest flow completion time."},
	{Name: "size_bytes", Unit: "bytes", PerFlow: true, Source: "sender",
		Definition: "Mean size of the flows that count for completion, the header of 24 bytes included."},
}

// arrivalMetrics exist with arrivals.
var arrivalMetrics = []results.MetricDef{
	{Name: "offered_load_bps", Unit: "bit/s", Source: "sender",
		Definition: "Sizes of the flows that arrived in the measurement window, divided by its length."},
	{Name: "start_lateness_p99_s", Unit: "s", Source: "sender",
		Definition: "99th percentile of how much later than drawn a flow was started: the generator's own error."},
	{Name: "start_lateness_max_s", Unit: "s", Source: "sender",
		Definition: "Largest such error."},
}

// slowdownMetrics exist with arrivals on a path of known capacity.
var slowdownMetrics = []results.MetricDef{
	{Name: "slowdown_ratio", Unit: "1", PerFlow: true, Source: "flow completion time over the ideal one",
		Definition: "Mean slowdown. A flow's is its completion time divided by what it would take alone: 1.5 x base_rtt (handshake, then the way of the data) + size / capacity. " +
			"base_rtt is the attribute, or the shortest handshake of the run."},
	{Name: "slowdown_mean_ratio", Unit: "1", Source: "as slowdown_ratio", Definition: "Mean slowdown; the same as slowdown_ratio."},
	{Name: "slowdown_p50_ratio", Unit: "1", Source: "as slowdown_ratio", Definition: "Median slowdown."},
	{Name: "slowdown_p95_ratio", Unit: "1", Source: "as slowdown_ratio", Definition: "95th percentile of the slowdown."},
	{Name: "slowdown_p99_ratio", Unit: "1", Source: "as slowdown_ratio", Definition: "99th percentile of the slowdown."},
	{Name: "slowdown_max_ratio", Unit: "1", Source: "as slowdown_ratio", Definition: "Largest slowdown."},
}

// series are the samples that the two roles report.
var series = []results.MetricDef{
	{Name: "goodput_bps", Unit: "bit/s", PerFlow: true, Source: sourceWindow,
		Definition: "Payload received in a bin, divided by its width (interval), at the bin's end; of all flows, and of each (in wider bins with more than 100 flows)."},
	{Name: "rtt_s", Unit: "s", PerFlow: true, Source: sourceInfo + ", tcpi_rtt", Definition: "Smoothed round-trip time."},
	{Name: "cwnd_bytes", Unit: "bytes", PerFlow: true, Source: sourceInfo + ", tcpi_snd_cwnd x tcpi_snd_mss", Definition: "Congestion window."},
	{Name: "ssthresh_bytes", Unit: "bytes", PerFlow: true, Source: sourceInfo + ", tcpi_snd_ssthresh x tcpi_snd_mss", Definition: "Slow start threshold (RFC 5681), once there is one."},
	{Name: "retransmissions_count", Unit: "segments", PerFlow: true, Source: sourceInfo + ", tcpi_total_retrans", Definition: "Segments retransmitted since the flow's start."},
	{Name: "delivery_rate_bps", Unit: "bit/s", PerFlow: true, Source: sourceInfo + ", tcpi_delivery_rate", Definition: "The kernel's latest estimate of the rate at which data is delivered."},
	{Name: "pacing_rate_bps", Unit: "bit/s", PerFlow: true, Source: sourceInfo + ", tcpi_pacing_rate", Definition: "Rate at which the kernel paces the flow, if it does."},
	{Name: "active_flows_count", Unit: "flows", Source: "sender", Definition: "Open flows, with arrivals; the series above, per flow, are then left out."},
}

// Metrics lists what this configuration can give.
func (w *Workload) Metrics() []results.MetricDef {
	out := append([]results.MetricDef(nil), bulkMetrics...)
	if w.Bytes > 0 || w.Arrivals != nil {
		out = append(out, sizedMetrics...)
	}
	if w.Arrivals != nil {
		out = append(out, arrivalMetrics...)
		if w.Arrivals.Capacity > 0 {
			out = append(out, slowdownMetrics...)
		}
	}
	return out
}
