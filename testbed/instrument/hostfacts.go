package instrument

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"wirelab/results"
)

// reportedSysctls are those that change what transports and queues do.
var reportedSysctls = []string{
	"net.core.default_qdisc", "net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog",
	"net.core.optmem_max", "net.core.rmem_default", "net.core.rmem_max", "net.core.somaxconn", "net.core.wmem_default", "net.core.wmem_max",
	"net.core.busy_poll", "net.core.busy_read",
	"net.ipv4.tcp_allowed_congestion_control", "net.ipv4.tcp_available_congestion_control", "net.ipv4.tcp_congestion_control",
	"net.ipv4.tcp_adv_win_scale", "net.ipv4.tcp_autocorking", "net.ipv4.tcp_dsack", "net.ipv4.tcp_early_retrans", "net.ipv4.tcp_ecn",
	"net.ipv4.tcp_fastopen", "net.ipv4.tcp_limit_output_bytes", "net.ipv4.tcp_mem", "net.ipv4.tcp_min_tso_segs", "net.ipv4.tcp_moderate_rcvbuf",
	"net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_no_metrics_save", "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_pacing_ca_ratio", "net.ipv4.tcp_pacing_ss_ratio",
	"net.ipv4.tcp_recovery", "net.ipv4.tcp_reordering", "net.ipv4.tcp_rmem", "net.ipv4.tcp_sack", "net.ipv4.tcp_slow_start_after_idle",
	"net.ipv4.tcp_timestamps", "net.ipv4.tcp_tso_win_divisor", "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_wmem",
	"kernel.perf_event_paranoid", "kernel.sched_rt_runtime_us",
}

// HostFacts reads what results depend on beside the experiment. What the host
// does not tell stays empty.
func HostFacts() results.Host { return hostFacts("/") }

// hostFacts reads below root, so that a test can make up a host.
func hostFacts(root string) results.Host {
	h := facts{root}
	cpu := h.cpuInfo()
	return results.Host{
		Hostname:    h.line("proc/sys/kernel/hostname"),
		OS:          h.osName(),
		Kernel:      strings.TrimSpace(h.line("proc/sys/kernel/osrelease") + " " + h.line("proc/sys/kernel/version")),
		Arch:        runtime.GOARCH,
		CPUModel:    cpu.model,
		Cores:       cpu.cores(),
		SMT:         h.line("sys/devices/system/cpu/smt/control"),
		Topology:    cpu.topology(),
		Governor:    h.governor(),
		Mitigations: h.mitigations(),
		MemoryBytes: h.memory(),
		Sysctls:     h.sysctls(),
		Virtual:     h.virtual(cpu),
		LoadAverage: h.line("proc/loadavg"),
		Root:        os.Geteuid() == 0,
		GoVersion:   runtime.Version(),
		BootID:      h.line("proc/sys/kernel/random/boot_id"),
	}
}

// facts reads small files below a root directory.
type facts struct{ root string }

// line is the trimmed text of a file, "" if it cannot be read.
func (f facts) line(path string) string {
	b, err := os.ReadFile(filepath.Join(f.root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// field finds "key=value" or "key : value" in a text.
func field(text, key, separator string) string {
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(line, separator)
		if ok && strings.TrimSpace(k) == key {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}

func (f facts) osName() string {
	if name := field(f.line("etc/os-release"), "PRETTY_NAME", "="); name != "" {
		return name
	}
	return runtime.GOOS
}

// cpuInfo is what /proc/cpuinfo says.
type cpuInfo struct {
	model      string
	threads    int
	sockets    map[string]bool
	physical   map[string]bool // cores: "socket/core"
	hypervisor bool
}

func (f facts) cpuInfo() cpuInfo {
	c := cpuInfo{sockets: map[string]bool{}, physical: map[string]bool{}}
	socket := "0"
	s := bufio.NewScanner(strings.NewReader(f.line("proc/cpuinfo")))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		key, value, _ := strings.Cut(s.Text(), ":")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch key {
		case "processor":
			c.threads++
			socket = "0"
		case "model name", "Model", "cpu model":
			c.model = value
		case "physical id":
			socket = value
		case "core id":
			c.sockets[socket] = true
			c.physical[socket+"/"+value] = true
		case "flags":
			c.hypervisor = slices.Contains(strings.Fields(value), "hypervisor")
		}
	}
	return c
}

func (c cpuInfo) cores() int {
	if c.threads > 0 {
		return c.threads
	}
	return runtime.NumCPU()
}

// topology is "sockets x cores per socket x threads per core".
func (c cpuInfo) topology() string {
	sockets, cores := len(c.sockets), len(c.physical)
	if sockets == 0 || cores == 0 {
		return ""
	}
	return fmt.Sprintf("%d x %d x %d", sockets, cores/sockets, c.threads/cores)
}

// governor lists the cpufreq governors in use.
func (f facts) governor() string {
	files, _ := filepath.Glob(filepath.Join(f.root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor"))
	var names []string
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil {
			names = append(names, strings.TrimSpace(string(b)))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

func (f facts) mitigations() map[string]string {
	const dir = "sys/devices/system/cpu/vulnerabilities"
	entries, _ := os.ReadDir(filepath.Join(f.root, dir))
	m := make(map[string]string, len(entries))
	for _, e := range entries {
		if v := f.line(filepath.Join(dir, e.Name())); v != "" {
			m[e.Name()] = v
		}
	}
	return m
}

func (f facts) memory() int64 {
	kib, _, _ := strings.Cut(field(f.line("proc/meminfo"), "MemTotal", ":"), " ")
	n, err := strconv.ParseInt(kib, 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

func (f facts) sysctls() map[string]string {
	m := make(map[string]string, len(reportedSysctls))
	for _, name := range reportedSysctls {
		if v := f.line("proc/sys/" + strings.ReplaceAll(name, ".", "/")); v != "" {
			m[name] = strings.Join(strings.Fields(v), " ")
		}
	}
	return m
}

// virtual names the hypervisor or container, as far as the host tells.
func (f facts) virtual(c cpuInfo) string {
	var parts []string
	product := strings.TrimSpace(f.line("sys/class/dmi/id/sys_vendor") + " " + f.line("sys/class/dmi/id/product_name"))
	switch {
	case f.line("sys/hypervisor/type") != "":
		parts = append(parts, f.line("sys/hypervisor/type"))
	case c.hypervisor && product != "":
		parts = append(parts, "virtual machine ("+product+")")
	case c.hypervisor:
		parts = append(parts, "virtual machine")
	}
	if source := f.line("sys/devices/system/clocksource/clocksource0/current_clocksource"); source == "kvm-clock" {
		parts = append(parts, "kvm")
	}
	for _, mark := range []string{".dockerenv", "run/.containerenv"} {
		if _, err := os.Stat(filepath.Join(f.root, mark)); err == nil {
			parts = append(parts, "container")
			break
		}
	}
	return strings.Join(parts, ", ")
}
