package testbed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"wirelab/testbed/journal"
	"wirelab/testbed/netns"
)

// A live lab is a testbed that stands until it is taken down. It is held by a
// process of its own, in the background: [StartOwner] starts one, which calls
// [Up] and then [Testbed.Hold]. Others find it by [Labs] or [Attach], start
// programs in it by [Lab.Start] and end it by [Lab.Down].

const labFile = "lab.json"

// Hold publishes the testbed as a live lab and returns when ctx ends, with nil,
// or when the backend ended by itself. The caller then closes the testbed.
func (t *Testbed) Hold(ctx context.Context, title string) error {
	if err := t.publish(title); err != nil {
		return fmt.Errorf("publish lab: %w", err)
	}
	var ended <-chan struct{}
	if t.session != nil {
		ended = t.session.Done()
	}
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return fmt.Errorf("the links of the lab ended: %w", t.session.Err())
	}
}

func (t *Testbed) publish(title string) error {
	l := Lab{ID: t.run, Title: title, Created: time.Now().UTC(), Owner: os.Getpid()}
	var err error
	if l.OwnerAge, err = journal.StartTime(l.Owner); err != nil {
		return err
	}
	for _, h := range t.hosts {
		n := LabNode{Name: h.name, Kind: h.kind, Namespace: h.Path()}
		for _, a := range h.addresses {
			n.Addresses = append(n.Addresses, a.IPv4.String())
			if a.IPv6.IsValid() {
				n.Addresses = append(n.Addresses, a.IPv6.String())
			}
		}
		l.Nodes = append(l.Nodes, n)
	}
	for _, x := range t.layout.Links {
		l.Links = append(l.Links, LabLink{x.Name, x.A, x.B, x.Forward.String(), x.Reverse.String()})
	}
	text, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(t.Dir(), labFile)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Labs lists the live labs below dir, oldest first.
func Labs(dir string) ([]*Lab, error) {
	runs, err := journal.Runs(dir)
	if err != nil {
		return nil, err
	}
	var labs []*Lab
	for _, run := range runs {
		if l, err := readLab(dir, run); err == nil {
			labs = append(labs, l)
		}
	}
	slices.SortFunc(labs, func(a, b *Lab) int { return a.Created.Compare(b.Created) })
	return labs, nil
}

func readLab(dir, run string) (*Lab, error) {
	if !journal.Live(dir, run) {
		return nil, fmt.Errorf("lab %s: its owner is gone: wirelab clean removes what is left", run)
	}
	text, err := os.ReadFile(filepath.Join(dir, run, labFile))
	if err != nil {
		return nil, err
	}
	l := &Lab{dir: dir}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("lab %s: %w", run, err)
	}
	return l, nil
}

// Attach finds a live lab by its id or, without one, the only one there is.
func Attach(dir, id string) (*Lab, error) {
	labs, err := Labs(dir)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, l := range labs {
		if l.ID == id || id == "" && len(labs) == 1 {
			return l, nil
		}
		ids = append(ids, l.ID)
	}
	switch {
	case len(labs) == 0:
		return nil, errors.New("no lab is up: wirelab up FILE builds one")
	case id == "":
		return nil, fmt.Errorf("several labs are up, say which: %s", strings.Join(ids, ", "))
	}
	return nil, fmt.Errorf("there is no lab %q: up are %s", id, strings.Join(ids, ", "))
}

// Node finds a node of the lab.
func (l *Lab) Node(name string) (LabNode, error) {
	var names []string
	for _, n := range l.Nodes {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	return LabNode{}, fmt.Errorf("lab %s has no node %q: it has %s", l.ID, name, someOf(names))
}

// Start starts a command in a node; the caller waits for it. It is killed when
// this process ends or the lab is taken down.
func (l *Lab) Start(node string, cmd *exec.Cmd) error {
	n, err := l.Node(node)
	if err != nil {
		return err
	}
	ns, err := netns.Open(n.Namespace)
	if err != nil {
		return fmt.Errorf("enter %s: %w", node, err)
	}
	defer ns.Close()
	cmd.Env = tagged(cmd.Env, l.ID, node)
	// Its thread is the command's parent and stays until this process ends.
	if err := netns.NewStarter().Start(ns, cmd); err != nil {
		return fmt.Errorf("start %s in %s: %w", cmd.Path, node, err)
	}
	return nil
}

// Down takes the lab down: its owner does when it is told to, and what it does
// not do in time is cleaned up after it.
func (l *Lab) Down(ctx context.Context) error {
	owner := process{l.Owner, l.OwnerAge, "owner of lab " + l.ID}
	if err := kill(ctx, []process{owner}, ownerGrace, dyingTime); err != nil {
		return fmt.Errorf("take lab down: %w", err)
	}
	_, err := cleanRun(ctx, l.dir, l.ID)
	if err != nil && !errors.Is(err, journal.ErrGone) {
		return fmt.Errorf("take lab down: %w", err)
	}
	return nil
}

// StartOwner starts cmd, a program that builds a testbed below dir with the run
// id and holds it, in a session of its own, and returns when the lab is up. It
// outlives this process. An error tells how the program ended; what it printed
// is where cmd's outputs lead, which should be files.
func StartOwner(ctx context.Context, cmd *exec.Cmd, dir, id string) (*Lab, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the owner of lab %s: %w", id, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if l, err := readLab(dir, id); err == nil {
			return l, nil
		}
		select {
		case <-tick.C:
		case err := <-ended:
			if err == nil {
				err = errors.New("exit status 0")
			}
			return nil, fmt.Errorf("the owner of lab %s ended before the lab was up: %w", id, err)
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for lab %s to come up: %w", id, context.Cause(ctx)), endOwner(cmd, ended))
		}
	}
}

// ownerGrace is how long the owner of a lab may take it down before it is
// killed.
const ownerGrace = 30 * time.Second

// endOwner ends an owner that is not wanted any more and tells how it ended.
func endOwner(cmd *exec.Cmd, ended <-chan error) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // one that has ended says so itself
	select {
	case err := <-ended:
		return err
	case <-time.After(ownerGrace):
		return errors.Join(fmt.Errorf("it did not end within %v: wirelab clean removes what is left", ownerGrace), cmd.Process.Kill(), <-ended)
	}
}
