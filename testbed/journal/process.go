package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// BootID identifies the running kernel since it was booted.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// StartTime returns when a process was started, in clock ticks since boot
// (proc_pid_stat(5), field 22). Together with the process id it identifies a
// process for as long as the kernel runs. A process that has ended but was not
// waited for counts as gone: os.ErrNotExist.
func StartTime(pid int) (uint64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, unix.ESRCH) {
		err = os.ErrNotExist // it ended while it was read
	}
	if err != nil {
		return 0, fmt.Errorf("start time of process %d: %w", pid, err)
	}
	// The name, in parentheses, may contain anything: look behind it.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("start time of process %d: %q is too short", pid, b)
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return 0, fmt.Errorf("start time of process %d: %w", pid, os.ErrNotExist)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
