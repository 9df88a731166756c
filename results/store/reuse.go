package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"wirelab/results"
)

// Missing returns the statuses of a manifest whose runs still have to be made:
// never made, broken on disk, or ended other than ok or partial. The runs are
// those that [Dir.Runs] returned.
func Missing(m *results.Manifest, runs []*results.Run) []results.RunStatus {
	done := map[int]bool{}
	for _, r := range runs {
		if r.Status == results.StatusOK || r.Status == results.StatusPartial {
			done[r.Index] = true
		}
	}
	var missing []results.RunStatus
	for _, s := range m.Runs {
		if !done[s.Index] {
			missing = append(missing, s)
		}
	}
	return missing
}

// SameHost reports whether results of two hosts may stand for each other: all
// that influences results is equal. Load, memory size, boot and Go version are
// left out.
func SameHost(a, b results.Host) bool {
	for _, h := range []*results.Host{&a, &b} {
		h.LoadAverage, h.MemoryBytes, h.BootID, h.GoVersion, h.Root = "", 0, "", "", false
		if len(h.Mitigations) == 0 {
			h.Mitigations = nil
		}
		if len(h.Sysctls) == 0 {
			h.Sysctls = nil
		}
	}
	return reflect.DeepEqual(a, b)
}

// Find looks in an earlier directory for a usable run (ended ok and valid) with
// the plan hash, made on an equal host and not listed in taken. It returns nil
// when there is none; broken runs are passed over.
func (d *Dir) Find(planHash string, host results.Host, taken []int) (*results.Run, error) {
	m, err := d.Manifest()
	if err != nil {
		return nil, err
	}
	if planHash == "" || !SameHost(m.Host, host) {
		return nil, nil
	}
	runs, _ := d.Runs()
	for _, r := range runs {
		if r.PlanHash == planHash && r.Valid && r.Status == results.StatusOK && !slices.Contains(taken, r.Index) && d.Verify(r) == nil {
			return r, nil
		}
	}
	return nil, nil
}

// Import takes a finished run of another directory as run, whose number,
// point and checks the caller has set anew. Raw files are linked where
// possible, else copied; their sums are verified first.
func (d *Dir) Import(from *Dir, old, run *results.Run) error {
	if err := from.Verify(old); err != nil {
		return fmt.Errorf("reuse %s: %w", old.DirName(), err)
	}
	w, err := d.BeginRun(run.Index, run.Point)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, f := range old.Files {
		if f.Name == SamplesName {
			continue
		}
		source := filepath.Join(from.runPath(old), filepath.FromSlash(f.Name))
		if err := linkOrCopy(source, filepath.Join(w.path, filepath.FromSlash(f.Name))); err != nil {
			return explain("reuse "+old.DirName(), err)
		}
	}
	// The table holds the run's number, so it is written anew.
	for s, err := range from.Samples(old) {
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return fmt.Errorf("reuse %s: %w", old.DirName(), err)
		}
		w.Sample(s)
	}
	return w.Commit(run)
}

// linkOrCopy makes target the same file as source, or a copy of it on another
// file system.
func linkOrCopy(source, target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	if os.Link(source, target) == nil {
		return nil
	}
	data, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	return os.WriteFile(target, data, 0o644)
}
