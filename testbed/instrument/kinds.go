package instrument

// Kinds lists every instrument kind, in the order of the reference.
func Kinds() []Kind {
	return []Kind{
		{
			Name: "tcp_info", New: newTCPInfo,
			Doc: "The kernel's state of every TCP flow of whole nodes, by socket diagnostics: RTT, congestion window, retransmissions, delivery rate. On by default, for nodes on which a workload other than tcp runs; the tcp workload follows its own flows.",
		},
		{
			Name: "core_load", New: newCoreLoad,
			Doc: "What every core did: a series per core with steal and softirq, and whether the host was contended. On by default.",
		},
		{
			Name: "backlog", New: newBacklog,
			Doc: "Series of every link's backlog, utilization and drops. The links' own metrics (result.TOPOLOGY.LINK.METRIC) come from it. On by default.",
		},
		{
			Name: "perf", New: newPerf,
			Doc: "Event counters of the kernel and the processor, over the workloads' processes or over all cores. Every event has a status (ok, not_supported, not_permitted, multiplexed, implausible); only ok ones, and multiplexed ones that were counted for a fifth of the time, have values.",
		},
		{
			Name: "capture", New: newCapture,
			Doc: "A pcapng file of the packets at nodes or links, with the kernel's timestamps in nanoseconds, and with the capture's own losses counted. A packet is recorded as the device saw it: a GSO super-packet is one record with its whole length, and a checksum that the sender left to its device is marked as not ready. Records of one interface are in order; those of several interfaces are handed over in blocks, so sort by time (reordercap).",
		},
	}
}

// Default is an instrument that runs in every experiment, under this name,
// unless a block of its kind is given.
type Default struct{ Name, Kind string }

// Defaults lists the instruments that are on by default.
func Defaults() []Default {
	return []Default{
		{Name: "tcp_info", Kind: "tcp_info"},
		{Name: "core_load", Kind: "core_load"},
		{Name: "backlog", Kind: "backlog"},
	}
}
