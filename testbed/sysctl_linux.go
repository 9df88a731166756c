package testbed

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sysctl is a file below /proc/sys and what to write to it. The kernel shows
// the ones of the namespace that the writing thread is in.
type sysctl struct {
	path, value string
	optional    bool // not every kernel has it
}

// ipv6Dir exists unless the kernel was built or booted without IPv6.
const ipv6Dir = "/proc/sys/net/ipv6"

func hasIPv6() bool {
	_, err := os.Stat(ipv6Dir)
	return err == nil
}

// nodeSysctls are what every node of a kind gets before its devices are made:
// "default" is what they will inherit, much of "all" is copied from the host.
// In a deep topology packets start with the largest hop limit there is.
func nodeSysctls(kind NodeKind, v6, deep bool) []sysctl {
	s := []sysctl{
		// The host may filter by reverse path; routes of a lab may be asymmetric.
		{"net/ipv4/conf/all/rp_filter", "0", false},
		{"net/ipv4/conf/default/rp_filter", "0", false},
		// A connection must not inherit ssthresh and RTT from an earlier run.
		{"net/ipv4/tcp_no_metrics_save", "1", false},
		// Any user may open ICMP echo sockets.
		{"net/ipv4/ping_group_range", "0 2147483647", false},
	}
	forward := "0"
	if kind == KindRouter {
		forward = "1"
	}
	s = append(s, sysctl{"net/ipv4/ip_forward", forward, false})
	if deep {
		s = append(s, sysctl{"net/ipv4/ip_default_ttl", strconv.Itoa(maxHops), false})
	}
	if !v6 {
		return s
	}
	if kind == KindBridge {
		return append(s, noIPv6()...)
	}
	s = append(s,
		sysctl{"net/ipv6/conf/default/accept_dad", "0", false},
		sysctl{"net/ipv6/conf/default/accept_ra", "0", false},
		sysctl{"net/ipv6/conf/default/router_solicitations", "0", false})
	if deep {
		s = append(s, sysctl{"net/ipv6/conf/default/hop_limit", strconv.Itoa(maxHops), false})
	}
	if kind == KindRouter {
		s = append(s, sysctl{"net/ipv6/conf/all/forwarding", "1", false})
	}
	return s
}

// noIPv6 keeps the kernel from sending anything of its own through devices
// that only pass frames on.
func noIPv6() []sysctl {
	return []sysctl{
		{"net/ipv6/conf/all/disable_ipv6", "1", false},
		{"net/ipv6/conf/default/disable_ipv6", "1", false},
	}
}

// set writes sysctls in the namespace of the calling thread.
func set(list []sysctl) error {
	for _, s := range list {
		err := writeFile("/proc/sys/"+s.path, s.value)
		if errors.Is(err, unix.ENOENT) && s.optional {
			continue
		}
		if err != nil {
			return fmt.Errorf("set sysctl %s = %q: %w", strings.ReplaceAll(s.path, "/", "."), s.value, explainSysctl(err))
		}
	}
	return nil
}

func explainSysctl(err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: this kernel has no such key in a network namespace", err)
	case errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: /proc/sys is read-only, as in an unprivileged container", err)
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: the kernel refuses the value", err)
	}
	return err
}

// writeFile does without the allocations and the poller of os.WriteFile: a
// thousand nodes write ten thousand of these.
func writeFile(path, value string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(value))
	return errors.Join(err, unix.Close(fd))
}

// userSysctls splits the sysctls of a node into those to be written before its
// devices are made and those that name a device. A link's name is translated
// into that of its device.
func userSysctls(n Node, devices map[string]string) (early, late []sysctl) {
	for _, key := range slices.Sorted(maps.Keys(n.Sysctls)) {
		parts := strings.Split(key, ".")
		s := sysctl{path: filepath.Join(parts...), value: n.Sysctls[key]}
		if len(parts) != 5 || parts[3] == "all" || parts[3] == "default" || parts[3] == "lo" ||
			parts[2] != "conf" && parts[2] != "neigh" {
			early = append(early, s)
			continue
		}
		if d, ok := devices[parts[3]]; ok {
			parts[3] = d
			s.path = filepath.Join(parts...)
		}
		late = append(late, s)
	}
	return early, late
}
