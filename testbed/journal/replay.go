package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Dead is the journal of a dead run, locked for replay.
type Dead struct {
	Header Header
	// Steps in the order in which they were taken; undo them in reverse.
	Steps []Step
	// Torn counts lines that could not be read: the last one of a run that was
	// killed while writing it. What it announces was not done.
	Torn int
	// Reboot says that the journal is of an earlier boot: nothing it names
	// exists any more, and the steps must not be undone.
	Reboot bool

	base, run string
	file      *os.File
}

// Run is the run's id, also where the header could not be read.
func (d *Dead) Run() string { return d.run }

// Dir is the run's directory.
func (d *Dead) Dir() string { return filepath.Join(d.base, d.run) }

// Runs lists the run ids below base that have a directory, live or dead. A
// missing base has none.
func Runs(base string) ([]string, error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var runs []string
	for _, e := range entries {
		if e.IsDir() && runID.MatchString(e.Name()) && e.Name() != lockDir {
			runs = append(runs, e.Name())
		}
	}
	return runs, nil
}

// lockPatience bounds the wait for the lock of an owner that is dead.
const lockPatience = 5 * time.Second

// errHeld says that somebody other than the owner, who is dead, has the lock.
var errHeld = errors.New("its lock is held")

// Adopt locks the journal of a dead run and reads it. It returns [ErrLive] if
// the owner, or somebody replaying it, is alive, and [ErrGone] if there is no
// such run. The caller ends with Remove or Release.
//
// A process that the owner was just starting when it was killed shares the lock
// until it has become another program, a moment later, and another replay will
// be done soon: while the owner is dead the lock is waited for, up to
// lockPatience, without keeping other runs from the directory.
func Adopt(base, run string) (*Dead, error) {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(time.Millisecond) {
		d, err := tryAdopt(base, run)
		if !errors.Is(err, errHeld) {
			return d, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("open journal %s: %w", run, ErrLive)
		}
	}
}

func tryAdopt(base, run string) (*Dead, error) {
	lock, err := lockBase(base, false)
	if errors.Is(err, os.ErrNotExist) {
		err = ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", run, err)
	}
	defer lock.Close()
	d := &Dead{base: base, run: run}
	if _, err := os.Stat(d.Dir()); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open journal %s: %w", run, ErrGone)
	}
	d.file, err = os.Open(filepath.Join(d.Dir(), fileName))
	if errors.Is(err, os.ErrNotExist) {
		return d, nil // killed between making the directory and the file
	}
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", run, err)
	}
	if err := d.lock(); err != nil {
		return nil, errors.Join(fmt.Errorf("open journal %s: %w", run, err), d.file.Close())
	}
	if err := d.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("read journal %s: %w", run, err), d.file.Close())
	}
	return d, nil
}

// lock takes the journal's lock; it returns errHeld where the owner is dead, so
// that its holder will soon give it up, and else ErrLive.
func (d *Dead) lock() error {
	if unix.Flock(int(d.file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return nil
	}
	var h Header
	line, err := bufio.NewReader(io.NewSectionReader(d.file, 0, 1<<16)).ReadBytes('\n')
	if err != nil || json.Unmarshal(line, &h) != nil {
		return ErrLive
	}
	if start, err := StartTime(h.PID); err == nil && start == h.Start {
		return ErrLive
	}
	return errHeld
}

// Live reports whether the run's owner is alive.
func Live(base, run string) bool {
	f, err := os.Open(filepath.Join(base, run, fileName))
	if err != nil {
		return false
	}
	defer f.Close()
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil
}

func (d *Dead) read() error {
	boot, err := BootID()
	if err != nil {
		return err
	}
	r := bufio.NewReader(d.file)
	for first := true; ; first = false {
		line, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		if len(line) == 0 {
			break
		}
		var step Step
		switch {
		case first && json.Unmarshal(line, &d.Header) == nil && d.Header.Schema != "":
			if d.Header.Schema != schema {
				return fmt.Errorf("its schema %s is not ours (%s): clean with the version that wrote it (%s)",
					d.Header.Schema, schema, d.Header.Version)
			}
		case !first && json.Unmarshal(line, &step) == nil && step.Op != "":
			d.Steps = append(d.Steps, step)
		default:
			d.Torn++
		}
		if err == io.EOF {
			break
		}
	}
	d.Reboot = d.Header.Boot != "" && d.Header.Boot != boot
	return nil
}

// Remove removes the run's directory once its steps are undone.
func (d *Dead) Remove() error {
	lock, err := lockBase(d.base, false)
	if err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	defer lock.Close()
	return errors.Join(removeRun(d.Dir()), d.Release(), removeEmpty(d.base))
}

// Release gives the journal back, to be replayed another time.
func (d *Dead) Release() error {
	if d.file == nil {
		return nil
	}
	err := d.file.Close()
	d.file = nil
	return err
}
