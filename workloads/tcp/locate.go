package tcp

import (
	"path/filepath"

	"wirelab/workloads"
)

var _ workloads.Locator = (*Workload)(nil)

// Locate makes the paths of traces and size files relative to dir.
func (w *Workload) Locate(dir string) {
	if w.Arrivals == nil {
		return
	}
	w.Arrivals.Trace = below(dir, w.Arrivals.Trace)
	if w.Arrivals.Sizes != nil {
		w.Arrivals.Sizes.File = below(dir, w.Arrivals.Sizes.File)
	}
}

// below is path as seen from dir.
func below(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
