package testbed

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/testbed/netns"
)

// Receive packet steering hands what arrives at a wire from a node to the
// processor of its flow. Without it packets of a flow whose sender moves to
// another processor overtake each other (Documentation/networking/scaling.rst).

// steerDefault is what devices made later in a namespace inherit, since Linux
// 6.3.
const steerDefault = "net/core/rps_default_mask"

// steer sets the mask device by device, where there is no default to inherit.
// The devices of a namespace show only in a sysfs mounted inside it; this one
// is mounted nowhere and gone with its descriptor.
func steer(ns *netns.NS, devices []string, mask string) error {
	return ns.Do(func() error {
		fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
		if err != nil {
			return fmt.Errorf("steer packets: open sysfs: %w", err)
		}
		defer unix.Close(fs)
		if err := unix.FsconfigCreate(fs); err != nil {
			return fmt.Errorf("steer packets: create sysfs: %w", err)
		}
		root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("steer packets: mount sysfs: %w", err)
		}
		defer unix.Close(root)
		for _, d := range devices {
			fd, err := unix.Openat(root, "class/net/"+d+"/queues/rx-0/rps_cpus", unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("steer packets of %s: %w", d, err)
			}
			_, err = unix.Write(fd, []byte(mask))
			if err = errors.Join(err, unix.Close(fd)); err != nil {
				return fmt.Errorf("steer packets of %s to %s: %w", d, mask, err)
			}
		}
		return nil
	})
}

// steering is what a backend may add: the processors that should take what
// arrives at the wires, usually all but those that it forwards on.
type steering interface{ SteeringCores() []int }

// steeringMask is the backend's wish, or every processor that is online.
func steeringMask(b emul.Backend) string {
	if s, ok := b.(steering); ok {
		list := make([]string, 0, 8)
		for _, c := range s.SteeringCores() {
			list = append(list, strconv.Itoa(c))
		}
		if m, ok := cpuMask(strings.Join(list, ",")); ok && len(list) > 0 {
			return m
		}
	}
	return onlineMask()
}

// onlineMask is the set of the processors that are online, as sysfs writes
// sets: groups of 32 bits in hexadecimal, the highest first.
func onlineMask() string {
	list, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err == nil {
		if m, ok := cpuMask(strings.TrimSpace(string(list))); ok {
			return m
		}
	}
	m, _ := cpuMask("0-" + strconv.Itoa(runtime.NumCPU()-1))
	return m
}

// cpuMask turns a list such as "0-3,8" into a mask.
func cpuMask(list string) (string, bool) {
	var words []uint32
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		a, errA := strconv.Atoi(first)
		b, errB := strconv.Atoi(last)
		if errA != nil || errB != nil || a < 0 || b > 1<<16 {
			return "", false
		}
		for c := a; c <= b; c++ {
			for len(words) <= c/32 {
				words = append(words, 0)
			}
			words[c/32] |= 1 << (c % 32)
		}
	}
	text := make([]string, len(words))
	for i, w := range words {
		format := "%08x"
		if i == len(words)-1 {
			format = "%x"
		}
		text[len(words)-1-i] = fmt.Sprintf(format, w)
	}
	return strings.Join(text, ","), true
}
