// Package store writes and reads the directory that an experiment leaves.
//
// [Create] makes EXPERIMENT/STAMP-ID below a root (or an exact directory) and
// locks it; [Open] opens one that exists, to read, resume or report. For each
// run, [Dir.BeginRun] gives a [RunWriter] with a temporary directory for logs
// and a sink for samples; its Commit writes run.json and renames the directory
// to its final name, so a run is complete or absent. [Dir.Runs] and
// [Dir.Samples] read back. Every other file goes through [Dir.WriteFile],
// which replaces atomically.
//
//	manifest.json                 what was run, where, and how each run ended
//	experiment.hcl                the exact text
//	runs/NNNN-POINT/run.json      one repetition: values, statuses, checks
//	runs/NNNN-POINT/samples.parquet
//	summary.csv, report.html, summary.md, checks.xml, figures/*.svg
//
// Names that start with a dot are unfinished and are removed by the next
// writer. Two processes never write one directory: the first write takes an
// advisory lock that dies with the process.
package store

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"wirelab/results"
)

// Names of the files and directories in a run directory.
const (
	ManifestName   = "manifest.json"
	ExperimentName = "experiment.hcl"
	SummaryName    = "summary.csv"
	RunsName       = "runs"
	RunName        = "run.json"
	SamplesName    = "samples.parquet"
	LatestName     = "latest"
)

// ErrInUse says that another process writes the directory.
var ErrInUse = errors.New("another wirelab process is writing to it; wait for it to end, or choose another directory with -o")

// Options of [Create]; the zero value is ready to use.
type Options struct {
	// Dir is the run directory itself; it may exist if it is empty. Without it
	// the directory is ROOT/EXPERIMENT/STAMP-ID.
	Dir string
	// Now is the time of the stamp, the current time when zero.
	Now time.Time
	// ID tells apart directories of one second; random when empty.
	ID string
}

// Dir is a run directory. Its methods are safe for concurrent use.
type Dir struct {
	path   string
	latest string // symlink beside the stamps, "" for an exact directory
	found  bool   // the directory is the user's: Create found it empty

	mu   sync.Mutex
	lock *os.File // nil until the first write
}

// Create makes a new run directory and locks it. It fails when an exact
// directory exists and is not empty.
func Create(root, experiment string, opt Options) (*Dir, error) {
	now := opt.Now
	if now.IsZero() {
		now = time.Now()
	}
	d := &Dir{}
	if opt.Dir != "" {
		d.path = filepath.Clean(opt.Dir)
		// A link to a directory means the directory, also when it goes again.
		if target, err := filepath.EvalSymlinks(d.path); err == nil {
			d.path = target
		}
	} else {
		id := opt.ID
		if id == "" {
			id = randomID()
		}
		parent := filepath.Join(root, fileName(experiment))
		stamp := now.UTC().Format("20060102-150405") + "-" + fileName(id)
		d.path = filepath.Join(parent, stamp)
		d.latest = filepath.Join(parent, LatestName)
	}
	if err := d.make(); err != nil {
		return nil, err
	}
	if err := d.Lock(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(d.path, RunsName), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, errors.Join(explain("create run directory", err), d.Close())
	}
	if d.latest != "" {
		if err := replaceLink(d.latest, filepath.Base(d.path)); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// make creates the directory, or accepts an empty one.
func (d *Dir) make() error {
	if err := os.MkdirAll(filepath.Dir(d.path), 0o755); err != nil {
		return explain("create run directory", err)
	}
	err := os.Mkdir(d.path, 0o755)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return explain("create run directory", err)
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return fmt.Errorf("create run directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("create run directory: %s exists and is not empty; choose another with -o, or resume it with: wirelab run %s", d.path, d.path)
	}
	d.found = true
	return nil
}

// Open opens an existing run directory; it must hold a manifest. Reading needs
// no lock; the first write takes it.
func Open(path string) (*Dir, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("open run directory: %w", err)
	}
	if _, err := os.Stat(filepath.Join(resolved, ManifestName)); err != nil {
		return nil, fmt.Errorf("open run directory: %s holds no %s, so it is no result of wirelab run: %w", path, ManifestName, err)
	}
	return &Dir{path: resolved}, nil
}

// Path is the directory's path.
func (d *Dir) Path() string { return d.path }

// Lock makes this process the only writer, or returns [ErrInUse] (wrapped). It
// also removes what an interrupted writer left unfinished.
func (d *Dir) Lock() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock != nil {
		return nil
	}
	f, err := os.Open(d.path)
	if err != nil {
		return fmt.Errorf("lock run directory: %w", err)
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return fmt.Errorf("lock %s: %w", d.path, err)
	}
	d.lock = f
	return d.sweep()
}

// sweep removes unfinished files and runs of an earlier writer.
func (d *Dir) sweep() error {
	for _, sub := range []string{".", RunsName, "figures"} {
		dir := filepath.Join(d.path, sub)
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for unfinished files: %w", err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), tempPrefix) {
				if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
					return fmt.Errorf("remove unfinished file: %w", err)
				}
			}
		}
	}
	return nil
}

// Close releases the lock. The directory stays.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil
	}
	err := d.lock.Close()
	d.lock = nil
	return err
}

// Discard removes what a run directory without a finished run holds, the
// directory itself unless Create found it, and its place as latest; with
// finished runs it only closes. What somebody else put into it stays.
func (d *Dir) Discard() error {
	if err := d.Lock(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(d.path, RunsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("discard run directory: %w", err), d.Close())
	}
	if len(entries) > 0 {
		return d.Close()
	}
	if err := d.removeOwn(); err != nil {
		return errors.Join(fmt.Errorf("discard run directory: %w", err), d.Close())
	}
	if d.latest != "" {
		if err := relinkLatest(d.latest, filepath.Base(d.path)); err != nil {
			return errors.Join(err, d.Close())
		}
	}
	return d.Close()
}

// removeOwn removes what a run writes before its first run is finished.
func (d *Dir) removeOwn() error {
	for _, name := range []string{RunsName, ExperimentName, ManifestName} {
		if err := os.RemoveAll(filepath.Join(d.path, name)); err != nil {
			return err
		}
	}
	if !d.found {
		_ = os.Remove(d.path) // only if empty
	}
	return nil
}

// relinkLatest points the link at the newest stamp that is left, when it
// pointed at the removed one; without any it removes link and parent.
func relinkLatest(link, removed string) error {
	if target, err := os.Readlink(link); err != nil || target != removed {
		return nil
	}
	parent := filepath.Dir(link)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return fmt.Errorf("update %s: %w", link, err)
	}
	for i := len(entries) - 1; i >= 0; i-- { // sorted: the newest stamp last
		if entries[i].IsDir() {
			return replaceLink(link, entries[i].Name())
		}
	}
	if err := os.Remove(link); err != nil {
		return fmt.Errorf("update %s: %w", link, err)
	}
	_ = os.Remove(parent) // only if empty: another run may be starting there
	return nil
}

// List returns the run directories of one experiment below root, oldest
// first, or of all experiments when the name is empty.
func List(root, experiment string) ([]string, error) {
	pattern := filepath.Join(root, "*", "*", ManifestName)
	if experiment != "" {
		pattern = filepath.Join(root, fileName(experiment), "*", ManifestName)
	}
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("list run directories: %w", err)
	}
	var dirs []string
	for _, m := range found {
		if dir := filepath.Dir(m); filepath.Base(dir) != LatestName {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// fileName makes a text safe as a single file name.
func fileName(text string) string {
	name := strings.Map(func(c rune) rune {
		if c < 0x20 || strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, text)
	if strings.Trim(name, ".") == "" {
		return "experiment"
	}
	return strings.TrimLeft(name, ".")
}

func randomID() string {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24
	return hex.EncodeToString(b[:])
}

// runPath is the final place of a run.
func (d *Dir) runPath(r *results.Run) string {
	return filepath.Join(d.path, RunsName, r.DirName())
}
