package instrument

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The columns of /proc/stat that are counted (proc_stat(5)); guest time is
// already part of user and nice.
const (
	cpuUser = iota
	cpuNice
	cpuSystem
	cpuIdle
	cpuIOWait
	cpuIRQ
	cpuSoftIRQ
	cpuSteal
	cpuColumns
)

// cpuMetrics names the share of each column, in their order.
var cpuMetrics = [cpuColumns]string{
	"user_ratio", "nice_ratio", "system_ratio", "idle_ratio",
	"iowait_ratio", "irq_ratio", "softirq_ratio", "steal_ratio",
}

// cpuTicks is the time of one core per column, in the kernel's ticks.
type cpuTicks [cpuColumns]uint64

// shares returns the share of each column since an earlier reading; ok is
// false if no tick has passed. Ticks that ran backwards (the kernel corrects
// idle and iowait) count as none.
func (c cpuTicks) shares(before cpuTicks) (s [cpuColumns]float64, ok bool) {
	var total float64
	for i := range c {
		s[i] = diff(before[i], c[i])
		total += s[i]
	}
	if total == 0 {
		return s, false
	}
	for i := range s {
		s[i] /= total
	}
	return s, true
}

// busy is the share of time in which a core did something for this host: not
// idle, not waiting for a disk, not stolen by the hypervisor.
func busy(s [cpuColumns]float64) float64 {
	return max(0, 1-s[cpuIdle]-s[cpuIOWait]-s[cpuSteal])
}

// cpuReader reads /proc/stat again and again.
type cpuReader struct {
	file *os.File
	buf  []byte
	ids  []int // core numbers; offline cores have no line
	now  []cpuTicks
}

func openCPU(path string) (*cpuReader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &cpuReader{file: f, buf: make([]byte, 64<<10)}, nil
}

// read refreshes ids and now.
func (r *cpuReader) read() error {
	n, err := r.file.ReadAt(r.buf, 0)
	if n == 0 {
		return fmt.Errorf("read %s: %w", r.file.Name(), err)
	}
	return r.parse(r.buf[:n])
}

// parse takes the cpuN lines at the head of /proc/stat; the rest may be cut.
func (r *cpuReader) parse(text []byte) error {
	r.ids, r.now = r.ids[:0], r.now[:0]
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte("cpu"))
		if !ok {
			break // the cpu lines come first
		}
		if rest[0] == ' ' {
			continue // all cores together
		}
		var v [1 + cpuColumns]uint64
		if n, err := counters(rest, v[:]); err != nil || n < len(v) {
			return fmt.Errorf("/proc/stat: unexpected line %q", line)
		}
		r.ids = append(r.ids, int(v[0]))
		r.now = append(r.now, cpuTicks(v[1:]))
	}
	if len(r.ids) == 0 {
		return errors.New("/proc/stat has no line of a core")
	}
	return nil
}

// counters reads the numbers of a line, at most len(into), and returns how many
// there are.
func counters(line []byte, into []uint64) (n int, err error) {
	for field := range bytes.FieldsSeq(line) {
		if n == len(into) {
			break
		}
		if into[n], err = strconv.ParseUint(string(field), 10, 64); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// throttled reads how long this process's control group (version 2) and its
// ancestors were throttled by their CPU quota, in microseconds; ok is false
// where the kernel does not say.
func throttled() (usec uint64, ok bool) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(own)) {
		path, found := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !found {
			continue
		}
		for ; path != "/" && path != "." && path != ""; path = filepath.Dir(path) {
			n, found := throttledOf(filepath.Join("/sys/fs/cgroup", path, "cpu.stat"))
			usec, ok = usec+n, ok || found
		}
	}
	return usec, ok
}

func throttledOf(file string) (uint64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		if v, found := strings.CutPrefix(line, "throttled_usec "); found {
			n, err := strconv.ParseUint(strings.TrimSpace(v), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
