package instrument

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// linuxPerf counts with perf_event_open(2).
type linuxPerf struct{}

var _ perfSystem = linuxPerf{}

func systemPerf() perfSystem { return linuxPerf{} }

// open implements [perfSystem]. Threads and processes that are started later
// are counted too (inherit).
func (linuxPerf) open(e perfEvent, pid, cpu, group int) (int, string) {
	a := unix.PerfEventAttr{
		Type: e.kind, Config: e.config, Size: unix.PERF_ATTR_SIZE_VER5,
		Read_format: unix.PERF_FORMAT_GROUP | unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
	}
	if pid >= 0 {
		a.Bits = unix.PerfBitInherit
	}
	fd, err := unix.PerfEventOpen(&a, pid, cpu, group, unix.PERF_FLAG_FD_CLOEXEC)
	switch {
	case err == nil:
		return fd, ""
	case errors.Is(err, unix.ESRCH):
		return -1, ""
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return -1, eventNotPermitted
	}
	return -1, eventNotSupported
}

// read implements [perfSystem].
func (linuxPerf) read(fd int, words []uint64) bool {
	b := make([]byte, 8*len(words))
	n, err := unix.Read(fd, b)
	if err != nil || n != len(b) {
		return false
	}
	for i := range words {
		words[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return true
}

// close implements [perfSystem].
func (linuxPerf) close(fd int) { _ = unix.Close(fd) }

// onlineCores lists the numbers of the cores that run.
func onlineCores() []int {
	r, err := openCPU("/proc/stat")
	if err != nil {
		return nil
	}
	defer func() { _ = r.file.Close() }()
	if r.read() != nil {
		return nil
	}
	return r.ids
}

// threads implements [perfSystem]. Those that appear later are inherited from
// the ones that are counted.
func (linuxPerf) threads(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may itself hold spaces and parentheses.
		s := string(b)
		fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		parent, err := strconv.Atoi(fields[1])
		id, err2 := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil && err2 == nil {
			children[parent] = append(children[parent], id)
		}
	}
	var out []int
	for queue := []int{pid}; len(queue) > 0; queue = queue[1:] {
		tasks, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(queue[0]), "task"))
		if err != nil {
			continue
		}
		for _, t := range tasks {
			if tid, err := strconv.Atoi(t.Name()); err == nil {
				out = append(out, tid)
			}
		}
		queue = append(queue, children[queue[0]]...)
	}
	return out
}
