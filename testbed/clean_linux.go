package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"wirelab/testbed/journal"
	"wirelab/testbed/netns"
)

// Clean undoes what dead runs below dir (usually [journal.DefaultDir]) left:
// processes, namespaces, devices, sysctls, files. It goes by their journals,
// and leaves alone whatever no journal names; runs whose owner is alive are
// only listed. What could not be undone keeps its journal, for another try.
func Clean(ctx context.Context, dir string) (Report, error) {
	var r Report
	runs, err := journal.Runs(dir)
	if err != nil {
		return r, fmt.Errorf("clean: %w", err)
	}
	var errs []error
	for _, run := range runs {
		c, err := cleanRun(ctx, dir, run)
		switch {
		case errors.Is(err, journal.ErrLive):
			r.Live = append(r.Live, run)
		case errors.Is(err, journal.ErrGone): // somebody else's clean was faster
		case err != nil:
			errs = append(errs, fmt.Errorf("clean run %s: %w", run, err))
		default:
			r.Cleaned = append(r.Cleaned, c)
		}
	}
	return r, errors.Join(append(errs, journal.SweepLocks(dir))...)
}

// cleanRun undoes and removes a dead run; [journal.ErrLive] if it is not dead.
func cleanRun(ctx context.Context, dir, run string) (CleanedRun, error) {
	dead, err := journal.Adopt(dir, run)
	if err != nil {
		return CleanedRun{}, err
	}
	c, err := undoRun(ctx, dead)
	if err != nil {
		return c, errors.Join(err, dead.Release())
	}
	return c, dead.Remove()
}

// undoRun undoes a run's steps in reverse; all are tried.
func undoRun(ctx context.Context, dead *journal.Dead) (CleanedRun, error) {
	c := &cleaner{CleanedRun: CleanedRun{Run: dead.Run(), Version: dead.Header.Version, Created: dead.Header.Created, Reboot: dead.Reboot}}
	if dead.Reboot {
		return c.CleanedRun, nil
	}
	owner := process{pid: dead.Header.PID, start: dead.Header.Start}
	if err := awaitDying(ctx, owner); err != nil {
		return c.CleanedRun, err
	}
	err := c.endProcesses(ctx, dead)
	for _, s := range slices.Backward(dead.Steps) {
		if e := c.undo(s); e != nil {
			err = errors.Join(err, e)
		}
	}
	return c.CleanedRun, err
}

// cleaner undoes one run.
type cleaner struct {
	CleanedRun
}

func (c *cleaner) did(format string, args ...any) {
	c.Done = append(c.Done, fmt.Sprintf(format, args...))
}

const (
	// orphanGrace is what the processes of a dead run are given between TERM
	// and KILL: nobody is left who would read what they have to say.
	orphanGrace = time.Second
	// dyingTime is how long a killed process may take to end: closing its
	// packet sockets costs a forwarder some 10 ms each.
	dyingTime = time.Minute
)

// endProcesses ends all processes of a run at once: those named, those with
// its tag, and those in its namespaces. Processes that are started meanwhile
// are met in the next round.
func (c *cleaner) endProcesses(ctx context.Context, dead *journal.Dead) error {
	m := newMatcher(dead)
	for range 10 {
		list, err := findProcesses(m.matches)
		if err != nil || len(list) == 0 {
			return err
		}
		for _, p := range list {
			c.did("ended process %v", p)
		}
		if err := kill(ctx, list, orphanGrace, dyingTime); err != nil {
			return err
		}
	}
	return errors.New("new processes keep appearing in its namespaces")
}

// matcher tells the processes of a dead run.
type matcher struct {
	pids    map[int]uint64 // process id: start time
	tags    []string
	cookies map[uint64]uint64 // namespace inode: cookie
	since   uint64            // start time of the run
}

func newMatcher(dead *journal.Dead) *matcher {
	m := &matcher{pids: map[int]uint64{}, cookies: map[uint64]uint64{}, since: dead.Header.Start}
	for _, s := range dead.Steps {
		switch s.Op {
		case journal.OpProcess:
			m.pids[s.PID] = s.Start
		case journal.OpTagged:
			m.tags = append(m.tags, s.Tag)
		case journal.OpNamespace:
			m.cookies[s.Inode] = s.Cookie
		}
	}
	return m
}

func (m *matcher) matches(pid int) bool {
	start, err := journal.StartTime(pid)
	if err != nil || start < m.since {
		return false // it ended, or is older than the run
	}
	if s, ok := m.pids[pid]; ok && s == start {
		return true
	}
	for _, t := range m.tags {
		if hasTag(pid, t) {
			return true
		}
	}
	cookie, ok := m.cookies[namespaceInode(pid)]
	return ok && sameNamespace(pid, cookie)
}

// sameNamespace compares the namespace of a process with a journal's cookie:
// the inode alone may have been used again since. A kernel without cookies is
// taken at the inode's word, for a process younger than the run.
func sameNamespace(pid int, cookie uint64) bool {
	if cookie == 0 {
		return true
	}
	n, err := netns.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return false
	}
	defer n.Close()
	return n.ID().Cookie == cookie
}

// undo undoes what is not a process. A step that was undone before, or never
// taken, is no error.
func (c *cleaner) undo(s journal.Step) error {
	switch s.Op {
	case journal.OpProcess, journal.OpTagged:
		return nil // done together, before
	case journal.OpNamespace:
		if s.Path == "" {
			return nil // nothing but its processes kept it
		}
		return c.remove(s.Path)
	case journal.OpRemove:
		return c.remove(s.Path)
	case journal.OpLink:
		return c.deleteLink(s)
	case journal.OpSysctl:
		return c.restoreSysctl(s)
	}
	return fmt.Errorf("its journal has the step %q, which this version does not know: clean with version %s", s.Op, c.Version)
}

func (c *cleaner) remove(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	c.did("removed %s", path)
	return nil
}

// deleteLink deletes a device of the host's namespace if it still has the tag
// of the run: the number may belong to another device by now.
func (c *cleaner) deleteLink(s journal.Step) error {
	h, err := netlink.NewHandle()
	if err != nil {
		return fmt.Errorf("delete device %s: %w", s.Name, err)
	}
	defer h.Close()
	l, err := h.LinkByIndex(s.Index)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete device %s: %w", s.Name, err)
	}
	if s.Alias == "" || l.Attrs().Alias != s.Alias {
		return nil
	}
	if err := h.LinkDel(l); err != nil {
		return fmt.Errorf("delete device %s: %w", l.Attrs().Name, err)
	}
	c.did("deleted device %s (%s)", l.Attrs().Name, s.Alias)
	return nil
}

func (c *cleaner) restoreSysctl(s journal.Step) error {
	path := "/proc/sys/" + strings.TrimPrefix(s.Path, "/proc/sys/")
	now, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // its device is gone
	}
	if err != nil {
		return fmt.Errorf("restore sysctl: %w", err)
	}
	if strings.TrimSpace(string(now)) == strings.TrimSpace(s.Value) {
		return nil
	}
	if err := writeFile(path, s.Value); err != nil {
		return fmt.Errorf("restore sysctl %s = %q: %w", s.Path, s.Value, err)
	}
	c.did("restored sysctl %s = %s", s.Path, s.Value)
	return nil
}
