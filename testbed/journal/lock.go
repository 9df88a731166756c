package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// lockDir holds the files of [LockName]; no run can have this id.
const lockDir = "locks"

// Lock is an exclusive claim of one run on something of the host's, such as a
// network card. The kernel gives it up when the process ends.
type Lock struct {
	base, path string
	file       *os.File
}

// LockName claims a name such as "nic-enp3s0" among all runs of base. It
// returns [ErrLive] when another run has it.
func LockName(base, name string) (*Lock, error) {
	if name == "" || strings.ContainsAny(name, "/\x00") || name[0] == '.' {
		return nil, fmt.Errorf("lock %q: not a file name", name)
	}
	guard, err := lockBase(base, true)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	defer guard.Close()
	dir := filepath.Join(base, lockDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	l := &Lock{base: base, path: filepath.Join(dir, name)}
	l.file, err = os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	if err := unix.Flock(int(l.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, ErrLive), l.file.Close())
	}
	return l, nil
}

// Unlock gives the name back and removes its file.
func (l *Lock) Unlock() error {
	guard, err := lockBase(l.base, false)
	if err != nil {
		return errors.Join(err, l.file.Close())
	}
	defer guard.Close()
	err = errors.Join(os.Remove(l.path), l.file.Close())
	return errors.Join(err, removeEmpty(filepath.Join(l.base, lockDir)), removeEmpty(l.base))
}

// SweepLocks removes the lock files that nobody holds any more, left by
// crashed runs.
func SweepLocks(base string) error {
	guard, err := lockBase(base, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer guard.Close()
	dir := filepath.Join(base, lockDir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("sweep locks: %w", err)
	}
	var errs []error
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			errs = append(errs, os.Remove(f.Name()))
		}
		errs = append(errs, f.Close())
	}
	errs = append(errs, removeEmpty(dir), removeEmpty(base))
	return errors.Join(errs...)
}

// lockBase locks the directory itself, waiting for others, and makes it first
// if asked to. Since the last run to go removes the directory, the lock counts
// only if the path still leads to what was locked.
func lockBase(base string, create bool) (*os.File, error) {
	for {
		if create {
			if err := os.MkdirAll(base, 0o755); err != nil {
				return nil, err
			}
		}
		f, err := os.Open(base)
		if create && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := retryInterrupted(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", base, err), f.Close())
		}
		if sameFile(f, base) {
			return f, nil
		}
		f.Close()
		if !create {
			return nil, &os.PathError{Op: "lock", Path: base, Err: os.ErrNotExist}
		}
	}
}

func sameFile(f *os.File, path string) bool {
	a, errA := f.Stat()
	b, errB := os.Stat(path)
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// retryInterrupted repeats a system call that a signal interrupted: Go's
// preemption sends them all the time.
func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// removeEmpty removes a directory unless something is in it.
func removeEmpty(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EEXIST) {
		return nil
	}
	return fmt.Errorf("remove %s: %w", dir, err)
}
