// Package journal keeps on disk what a run has to undo, so that `wirelab
// clean` can do it after a crash.
//
// A run has a directory DIR/RUNID (DIR is /run/wirelab) with a file "journal"
// in it: one JSON object a line, first a [Header], then [Step]s. A step is
// written, and handed to the kernel, before the thing it undoes is done; so a
// step may name something that was never made, and undoing must not mind. The
// directory is on a tmpfs: it does not outlive the kernel whose state it
// describes, and writes are not synchronised to any disk.
//
// The owner of a journal holds a lock (flock) on it from the first instant. A
// journal whose lock can be taken belongs to a dead run, and whoever takes it
// may replay it ([Adopt]); a live run is never touched and two replays never
// meet. DIR itself is locked, briefly, while run directories come and go, so
// that a run about to be born is not taken for a dead one. The last run to go
// removes DIR.
//
// The package knows files, locks and processes; what a step's undoing means
// for links and namespaces is up to the testbed. Anyone may import it: it
// imports nothing of ours.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultDir is where the journals of the runs on this host are.
const DefaultDir = "/run/wirelab"

const fileName = "journal"

// Errors of Create and Adopt.
var (
	ErrExists = errors.New("a run of this id exists already")
	ErrLive   = errors.New("its owner is alive")
	ErrGone   = errors.New("there is no such run")
)

// Op says what undoing a step means.
type Op string

// The ops. Undoing one that was undone already, or never done, does nothing.
const (
	// Remove the file or directory tree at Path.
	OpRemove Op = "remove"
	// Kill the processes in the namespace with Inode and Cookie, then remove
	// Path (a mount or a link to it) if it is given.
	OpNamespace Op = "netns"
	// Delete the network device with Index if its alias is Alias.
	OpLink Op = "link"
	// Kill the process PID if it started at Start.
	OpProcess Op = "process"
	// Kill every process whose environment has the line Tag.
	OpTagged Op = "tagged"
	// Write Value to the file Path below /proc/sys.
	OpSysctl Op = "sysctl"
)

// Step is one thing to undo.
type Step struct {
	Op     Op     `json:"op"`
	Name   string `json:"name,omitempty"` // for people: the node, link, file
	Path   string `json:"path,omitempty"`
	Inode  uint64 `json:"inode,omitempty"`
	Cookie uint64 `json:"cookie,omitempty"`
	Index  int    `json:"index,omitempty"`
	Alias  string `json:"alias,omitempty"`
	PID    int    `json:"pid,omitempty"`
	Start  uint64 `json:"start,omitempty"` // clock ticks since boot, see [StartTime]
	Tag    string `json:"tag,omitempty"`
	Value  string `json:"value,omitempty"`
}

// Header is the first line of a journal.
type Header struct {
	Schema  string    `json:"schema"` // "wirelab/journal/1"
	Run     string    `json:"run"`
	Boot    string    `json:"boot"` // /proc/sys/kernel/random/boot_id
	PID     int       `json:"pid"`
	Start   uint64    `json:"start"` // clock ticks since boot
	Version string    `json:"version"`
	Created time.Time `json:"created"`
}

const schema = "wirelab/journal/1"

// Journal is the open journal of a live run. Its methods may be called at the
// same time.
type Journal struct {
	base string // DIR
	run  string

	mu   sync.Mutex // guards file
	file *os.File   // locked; nil once removed
}

var runID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// Create makes the directory base/run with a journal in it and locks it. It
// returns [ErrExists] when there is one, live or dead. The version is that of
// the calling program.
func Create(base, run, version string) (*Journal, error) {
	if !runID.MatchString(run) || run == lockDir {
		return nil, fmt.Errorf("create journal: run id %q: use letters, digits, - and _, at most 64", run)
	}
	lock, err := lockBase(base, true)
	if err != nil {
		return nil, fmt.Errorf("create journal: %w", explain(err))
	}
	defer lock.Close()
	dir := filepath.Join(base, run)
	if err := os.Mkdir(dir, 0o755); errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("create journal %s: %w: wirelab clean removes it if it is dead", dir, ErrExists)
	} else if err != nil {
		return nil, errors.Join(fmt.Errorf("create journal: %w", explain(err)), removeEmpty(base))
	}
	j := &Journal{base: base, run: run}
	if err := j.begin(version); err != nil {
		return nil, errors.Join(fmt.Errorf("create journal %s: %w", dir, explain(err)), os.RemoveAll(dir), removeEmpty(base))
	}
	return j, nil
}

func (j *Journal) begin(version string) error {
	f, err := os.OpenFile(filepath.Join(j.Dir(), fileName), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	j.file = f
	// Nobody else can want it for longer than Live takes to look.
	if err := retryInterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	h := Header{Schema: schema, Run: j.run, Version: version, PID: os.Getpid(), Created: time.Now().UTC()}
	if h.Boot, err = BootID(); err != nil {
		return err
	}
	if h.Start, err = StartTime(h.PID); err != nil {
		return err
	}
	line, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return err
}

// Run is the run's id.
func (j *Journal) Run() string { return j.run }

// Dir is the run's directory, for state that clean removes with the journal.
func (j *Journal) Dir() string { return filepath.Join(j.base, j.run) }

// Add writes steps, in the order in which the things are about to be done. The
// kernel has them when it returns.
func (j *Journal) Add(steps ...Step) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, s := range steps {
		if err := enc.Encode(s); err != nil {
			return fmt.Errorf("write journal: %w", err)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return errors.New("write journal: it is closed")
	}
	if n, err := j.file.Write(b.Bytes()); err != nil {
		return errors.Join(fmt.Errorf("write journal %s: %w", j.Dir(), explain(err)), j.cut(n))
	}
	return nil
}

// cut takes the last n bytes back: a line that was cut short would spoil the
// one written after it.
func (j *Journal) cut(n int) error {
	if n == 0 {
		return nil
	}
	info, err := j.file.Stat()
	if err != nil {
		return err
	}
	return j.file.Truncate(info.Size() - int64(n))
}

// Remove ends a run whose steps are all undone: its directory disappears.
func (j *Journal) Remove() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	lock, err := lockBase(j.base, false)
	if err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	defer lock.Close()
	err = errors.Join(removeRun(j.Dir()), j.file.Close(), removeEmpty(j.base))
	j.file = nil
	return err
}

// removeRun removes the journal last, so that a crash in between leaves
// something to replay.
func removeRun(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != fileName {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// explain adds what the operator can do about an error.
func explain(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: run as root", err)
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: make room there, what a run must undo could not be written down", err)
	}
	return err
}
