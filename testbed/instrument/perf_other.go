//go:build !linux

package instrument

// noPerf counts nothing: perf_event_open(2) is Linux's.
type noPerf struct{}

var _ perfSystem = noPerf{}

func systemPerf() perfSystem { return noPerf{} }

func (noPerf) open(perfEvent, int, int, int) (int, string) { return -1, eventNotSupported }
func (noPerf) read(int, []uint64) bool                     { return false }
func (noPerf) close(int)                                   {}

func (noPerf) threads(pid int) []int { return []int{pid} }

func onlineCores() []int { return nil }
