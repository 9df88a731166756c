package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"wirelab/testbed/netns"
)

// endProcesses ends whatever is left in the nodes: processes that nobody
// stopped, and those that they left behind. Their parent thread goes last, as
// its end kills what it started.
func (t *Testbed) endProcesses() error {
	inodes := make(map[uint64]bool, len(t.hosts)+1)
	for _, h := range t.hosts {
		if h != nil {
			inodes[h.ns.ID().Inode] = true
		}
	}
	if t.wire != nil {
		inodes[t.wire.ID().Inode] = true
	}
	mine := func(pid int) bool { return inodes[namespaceInode(pid)] || hasTag(pid, Tag(t.run)) }
	list, err := findProcesses(mine)
	if len(list) > 0 {
		t.log("ending %d processes left in the testbed", len(list))
		err = errors.Join(err, kill(context.Background(), list, killGrace, killGrace))
	}
	t.starter.Close()
	if len(list) == 0 || err != nil {
		return err
	}
	// What they started while they were being ended has had its turn too.
	if list, err = findProcesses(mine); len(list) > 0 {
		err = errors.Join(err, kill(context.Background(), list, 0, killGrace))
	}
	return err
}

// closeNamespaces gives all namespaces up. The kernel takes them down in the
// background, one batch after the other. One of them stays until the devices in
// it are gone, which they are when the namespaces at their other ends are; of
// the others, those are given up last. So what comes next meets a host as it
// was before.
func (t *Testbed) closeNamespaces() error {
	witness, beside := t.wire, map[int]bool{}
	for i, h := range t.hosts {
		if h != nil && t.wire == nil && len(t.layout.links[i]) > 0 {
			witness = h.ns // the last of them
			clear(beside)
			for _, e := range t.layout.links[i] {
				beside[t.layout.peerOf(e)] = true
			}
		}
	}
	var errs []error
	for _, last := range []bool{false, true} {
		for i, h := range t.hosts {
			if h != nil && h.ns != witness && beside[i] == last {
				errs = append(errs, h.ns.Close())
			}
		}
	}
	if witness != nil {
		errs = append(errs, t.awaitGone(witness), witness.Close())
	}
	return errors.Join(errs...)
}

// goneTime is how long the kernel is given to take devices down. It waits for a
// grace period per port of a bridge.
const goneTime = time.Minute

// stuckTime is how long nothing may change before devices are removed one by
// one, which takes longer in all.
const stuckTime = time.Second

// awaitGone waits until a namespace has no device of the run any more. A
// connection whose last words nobody acknowledged keeps the namespace at the
// other end, and its devices, for minutes: those devices are removed from here.
func (t *Testbed) awaitGone(ns *netns.NS) error {
	h, err := netlink.NewHandleAt(ns.Handle())
	if err != nil {
		return err
	}
	defer h.Close()
	most, changed, stuck := -1, time.Now(), false
	for start, pause := time.Now(), time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		links, err := h.LinkList()
		changing := errors.Is(err, netlink.ErrDumpInterrupted)
		if err != nil && !changing {
			return fmt.Errorf("list devices: %w", err)
		}
		stuck = stuck || time.Since(changed) > stuckTime
		var left []string
		for _, l := range links {
			if !strings.HasPrefix(l.Attrs().Alias, Alias(t.run, "")) {
				continue
			}
			left = append(left, l.Attrs().Name)
			if stuck {
				// An error is most likely that it went by itself; if not, the
				// next round tries again.
				_ = h.LinkDel(l)
			}
		}
		if len(left) != most {
			most, changed = len(left), time.Now()
		}
		if len(left) == 0 && !changing {
			return nil
		}
		if time.Since(start) > goneTime {
			return fmt.Errorf("waiting for the kernel to remove devices: %s are still there after %v: something outside holds a namespace of the run",
				someOf(left), goneTime)
		}
		time.Sleep(pause)
	}
}
