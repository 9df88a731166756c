package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"wirelab/results"
)

// RunWriter collects one run. Exactly one of Commit and Abort ends it.
type RunWriter struct {
	dir  *Dir
	path string // temporary directory

	mu      sync.Mutex
	samples *sampleWriter
	done    bool
}

// BeginRun starts run number index of a point. Its temporary directory holds
// actors/ for logs; nothing of it is visible before Commit.
func (d *Dir) BeginRun(index int, point results.Point) (*RunWriter, error) {
	if err := d.Lock(); err != nil {
		return nil, err
	}
	name := results.RunDirName(index, point.ID)
	runs := filepath.Join(d.path, RunsName)
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return nil, explain("begin run "+name, err)
	}
	path, err := os.MkdirTemp(runs, tempPrefix+name+"-*")
	if err != nil {
		return nil, explain("begin run "+name, err)
	}
	w := &RunWriter{dir: d, path: path}
	err = errors.Join(os.Chmod(path, 0o755), os.Mkdir(filepath.Join(path, "actors"), 0o755))
	if err != nil {
		_ = os.RemoveAll(path)
		return nil, explain("begin run "+name, err)
	}
	w.samples = newSampleWriter(filepath.Join(path, SamplesName), index)
	return w, nil
}

// Path is the run's temporary directory, for logs and captures. Its files move
// with it on Commit.
func (w *RunWriter) Path() string { return w.path }

// Sample keeps one row. It is cheap and safe for concurrent use; values that
// are not finite are left out. An error of writing shows in Commit.
func (w *RunWriter) Sample(s results.Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.done {
		w.samples.add(s)
	}
}

// Err returns the first error of writing samples, so that a long run can stop
// early when the disk is full.
func (w *RunWriter) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.samples.err
}

// Abort removes everything of the run. After Commit it does nothing, so it can
// be deferred.
func (w *RunWriter) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return
	}
	w.done = true
	w.samples.abort()
	_ = os.RemoveAll(w.path)
}

// Commit writes samples.parquet and run.json and gives the run its final name;
// an earlier record of the same run is replaced. It sets run.Files and drops
// what is not finite from run (see [Clean]). On an error nothing of the run is
// left.
func (w *RunWriter) Commit(run *results.Run) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.done {
		return fmt.Errorf("commit run %d: it has ended already", run.Index)
	}
	w.done = true
	if err := w.finish(run); err != nil {
		w.samples.abort()
		return errors.Join(err, os.RemoveAll(w.path))
	}
	return nil
}

func (w *RunWriter) finish(run *results.Run) error {
	step := "commit run " + run.DirName()
	if err := w.samples.close(); err != nil {
		return explain(step, err)
	}
	files, err := fingerprint(w.path)
	if err != nil {
		return explain(step, err)
	}
	run.Files = files
	Clean(run)
	text, err := encode(run)
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	if err := writeFile(filepath.Join(w.path, RunName), text); err != nil {
		return err
	}
	return w.dir.publish(w.path, w.dir.runPath(run))
}

// publish renames a finished temporary directory to its final name, replacing
// what is there.
func (d *Dir) publish(temp, final string) error {
	old := ""
	if exists(final) {
		old = filepath.Join(filepath.Dir(final), tempPrefix+"old-"+randomID())
		if err := os.Rename(final, old); err != nil {
			return fmt.Errorf("replace %s: %w", final, err)
		}
	}
	if err := os.Rename(temp, final); err != nil {
		if old != "" {
			err = errors.Join(err, os.Rename(old, final))
		}
		return explain("publish "+final, err)
	}
	if old != "" {
		_ = os.RemoveAll(old) // the next writer sweeps what is left
	}
	return syncDir(filepath.Dir(final))
}

// fingerprint syncs and hashes the raw files below dir, in a fixed order.
func fingerprint(dir string) ([]results.File, error) {
	var files []results.File
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		sum, size, err := hashFile(path)
		files = append(files, results.File{Name: filepath.ToSlash(name), SHA256: sum, Bytes: size})
		return err
	})
	slices.SortFunc(files, func(a, b results.File) int { return compareText(a.Name, b.Name) })
	return files, err
}

// hashFile returns the SHA-256 and the size of a file, and syncs it.
func hashFile(path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), n, f.Sync()
}
