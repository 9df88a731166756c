package resultstest

import (
	"time"

	"wirelab/results"
)

// Source is the text of the made-up experiment.
const Source = `experiment "quickstart" {
  title       = "Does CUBIC leave Reno its share of a 100 Mbit/s bottleneck?"
  duration    = "4s"
  warmup      = "1s"
  repetitions = 3
}

sweep {
  buffer = [0.5, 1] # in BDP
}
`

func manifest(opt Options) *results.Manifest {
	return &results.Manifest{
		Schema: "wirelab/manifest/1", Experiment: "quickstart",
		Title:          "Does CUBIC leave Reno its share of a 100 Mbit/s bottleneck?",
		ExperimentHash: "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8",
		PlanHash:       "0c7e6a405862e402eb76a70f8a26fc732d07c32931e9fae9ab1582911d2e8a3b",
		Variables:      map[string]string{"flows": "2"}, Substrate: "namespace",
		Duration: duration, Warmup: warmup, Repetitions: opt.Repetitions, Seed: 1,
		Host: results.Host{
			Hostname: "lab1", OS: "linux", Kernel: "6.1.0-18-amd64", Arch: "amd64", CPUModel: "AMD EPYC 7713", Cores: 2,
			SMT: "on", Topology: "1 x 1 x 2", Governor: "performance", MemoryBytes: 8 << 30, Virtual: "kvm",
			Mitigations: map[string]string{"retbleed": "untrained return thunk"}, GoVersion: "go1.26.8", Root: true,
			Sysctls: map[string]string{"net.ipv4.tcp_congestion_control": "cubic", "net.core.rmem_max": "212992"},
		},
		Version: "v0.1.0", Modules: map[string]string{"github.com/parquet-go/parquet-go@v0.32.0": "h1:abc="},
		Started: started, Finished: started.Add(42 * time.Second), Complete: true,
		Metrics: metrics(), Overhead: map[string]float64{"core_load": 0.004, "tcp_info": 0.011},
		Notes: []string{"net.bottleneck: queue = bdp(100 Mbit/s, 40 ms, 0.5) = 250000 B"},
	}
}

func metrics() []results.NamedMetrics {
	tcp := []results.MetricDef{
		{Name: "goodput_bps", Unit: "bit/s", Definition: "New bytes delivered to the receiving application, times 8, over the window; all flows.", Source: "RFC 5166, section 2.1", PerFlow: true},
		{Name: "rtt_p50_s", Unit: "s", Definition: "Median of the smoothed RTT samples of all flows in the window.", Source: "tcp_info.tcpi_rtt"},
		{Name: "rtt_p99_s", Unit: "s", Definition: "99th percentile of the smoothed RTT samples of all flows in the window.", Source: "tcp_info.tcpi_rtt"},
		{Name: "retransmissions_count", Unit: "segments", Definition: "Segments sent again in the window.", Source: "tcp_info.tcpi_total_retrans"},
	}
	return []results.NamedMetrics{
		{Name: "cubic", Kind: "tcp", Metrics: tcp},
		{Name: "reno", Kind: "tcp", Metrics: tcp},
		{Name: "net.bottleneck", Kind: "link", Metrics: []results.MetricDef{
			{Name: "utilization_ratio", Unit: "1", Definition: "Frame bytes sent over what the rate allows in the window.", Source: "software backend's counters"},
			{Name: "queue_drops_count", Unit: "packets", Definition: "Segments that found the queue full.", Source: "software backend's counters"},
			{Name: "backlog_mean_bytes", Unit: "bytes", Definition: "Mean of the queue's backlog samples in the window.", Source: "software backend's counters"},
			{Name: "departure_error_p50_s", Unit: "s", Definition: "Median of (time sent - time due) of all segments.", Source: "software backend's histogram"},
			{Name: "departure_error_p99_s", Unit: "s", Definition: "99th percentile of (time sent - time due) of all segments.", Source: "software backend's histogram"},
			{Name: "deadline_misses_count", Unit: "packets", Definition: "Segments sent later than the stated tolerance.", Source: "software backend's counters"},
		}},
		{Name: "host", Kind: "core_load", Metrics: []results.MetricDef{
			{Name: "load_max_ratio", Unit: "1", Definition: "Share of the window in which the busiest core worked.", Source: "/proc/stat"},
			{Name: "steal_max_ratio", Unit: "1", Definition: "Share of the window that the hypervisor took, most affected core.", Source: "/proc/stat"},
		}},
	}
}
