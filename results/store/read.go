package store

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"wirelab/results"
)

func compareText(a, b string) int { return cmp.Compare(a, b) }

// Runs reads the finished runs, by index. A run whose record is broken is left
// out and named in the error; the others are returned all the same.
func (d *Dir) Runs() ([]*results.Run, error) {
	entries, err := os.ReadDir(filepath.Join(d.path, RunsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	var runs []*results.Run
	var broken []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.IsDir() {
			continue
		}
		run := &results.Run{}
		if err := decode(filepath.Join(d.path, RunsName, e.Name(), RunName), run); err != nil {
			broken = append(broken, err)
			continue
		}
		if run.Status == "" {
			broken = append(broken, fmt.Errorf("read %s: its record has no status", e.Name()))
			continue
		}
		if run.DirName() != e.Name() {
			broken = append(broken, fmt.Errorf("read %s: its record belongs to %s", e.Name(), run.DirName()))
			continue
		}
		runs = append(runs, run)
	}
	slices.SortFunc(runs, func(a, b *results.Run) int { return cmp.Compare(a.Index, b.Index) })
	return runs, errors.Join(broken...)
}

// RunPath is the directory of a finished run.
func (d *Dir) RunPath(run *results.Run) string { return d.runPath(run) }

// Verify compares a run's raw files with the sizes and SHA-256 sums that its
// record holds; the error names each file that is missing or differs.
func (d *Dir) Verify(run *results.Run) error {
	var bad []error
	for _, f := range run.Files {
		path := filepath.Join(d.runPath(run), filepath.FromSlash(f.Name))
		sum, size, err := hashFile(path)
		switch {
		case err != nil:
			bad = append(bad, fmt.Errorf("verify: %w", err))
		case sum != f.SHA256 || size != f.Bytes:
			bad = append(bad, fmt.Errorf("verify %s: it has changed since the run (%d bytes, SHA-256 %s; recorded %d, %s)", path, size, sum, f.Bytes, f.SHA256))
		}
	}
	return errors.Join(bad...)
}

// WriteManifest replaces manifest.json.
func (d *Dir) WriteManifest(m *results.Manifest) error {
	text, err := encode(m)
	if err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return d.WriteFile(ManifestName, text)
}

// Manifest reads manifest.json, and refuses what has no schema: it is something
// else's, or was emptied.
func (d *Dir) Manifest() (*results.Manifest, error) {
	m := &results.Manifest{}
	if err := decode(filepath.Join(d.path, ManifestName), m); err != nil {
		return nil, err
	}
	if m.Schema == "" {
		return nil, fmt.Errorf("read %s: it names no schema, so wirelab run did not write it", filepath.Join(d.path, ManifestName))
	}
	return m, nil
}
