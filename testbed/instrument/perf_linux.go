package instrument

import (
	"encoding/binary"
	"errors"

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
	var out []int
	for _, p := range readProcesses().below(pid) {
		out = append(out, threadsOf(p)...)
	}
	return out
}
