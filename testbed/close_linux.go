package testbed

import (
	"context"
	"errors"
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

// closeNamespaces gives all namespaces up. The kernel takes those that were
// given up together down together.
func (t *Testbed) closeNamespaces() error {
	var errs []error
	for _, h := range t.hosts {
		if h != nil {
			errs = append(errs, h.ns.Close())
		}
	}
	if t.wire != nil {
		errs = append(errs, t.wire.Close())
	}
	return errors.Join(errs...)
}
