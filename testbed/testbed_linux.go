package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"wirelab/emul"
	"wirelab/testbed/journal"
	"wirelab/testbed/netns"
)

// Testbed is a topology built.
type Testbed struct {
	layout  *layout
	run     string
	journal *journal.Journal
	log     func(format string, args ...any)
	v6      bool

	hosts   []*Host // in the order of the topology's nodes
	byName  map[string]*Host
	wire    *netns.NS // nil without impaired links
	session emul.Session
	starter *netns.Starter

	mu   sync.Mutex
	undo []undo // taken in order, undone in reverse
}

type undo struct {
	what string
	fn   func() error
}

// acquired registers how to undo the step just taken.
func (t *Testbed) acquired(what string, fn func() error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undo = append(t.undo, undo{what, fn})
}

// Close takes the testbed down, in reverse order of how it came up: backend,
// processes, namespaces, journal. Every step is tried; their errors are
// joined. A second Close does nothing.
func (t *Testbed) Close() error {
	t.mu.Lock()
	steps := t.undo
	t.undo = nil
	t.mu.Unlock()
	var errs []error
	for i := len(steps) - 1; i >= 0; i-- {
		if err := steps[i].fn(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", steps[i].what, err))
		}
	}
	return errors.Join(errs...)
}

// Host returns the node of that name, nil if there is none.
func (t *Testbed) Host(name string) *Host { return t.byName[name] }

// Hosts returns all nodes, bridges too, in the order of the topology.
func (t *Testbed) Hosts() []*Host { return t.hosts }

// Topology is what was built.
func (t *Testbed) Topology() Topology { return t.layout.Topology }

// RunID is the id of the run on this host.
func (t *Testbed) RunID() string { return t.run }

// Dir is the directory of the run's state on this host, removed by Close.
func (t *Testbed) Dir() string { return t.journal.Dir() }

// Session is the backend's, nil when no link is impaired. Its links are in the
// order of the topology's impaired links.
func (t *Testbed) Session() emul.Session { return t.session }

// Devices returns, per link, the devices at its A and B ends.
func (t *Testbed) Devices() map[string][2]Device {
	all := make(map[string][2]Device, len(t.layout.Links))
	for i, l := range t.layout.Links {
		d := t.layout.devices[i]
		all[l.Name] = [2]Device{
			{Node: l.A, Name: d[0].name, Index: d[0].index, Facing: l.B},
			{Node: l.B, Name: d[1].name, Index: d[1].index, Facing: l.A},
		}
	}
	return all
}

// Addresses returns the addresses of every host and router. Without IPv6 in
// the kernel, the IPv6 ones are invalid.
func (t *Testbed) Addresses() map[string][]Address {
	all := make(map[string][]Address, len(t.hosts))
	for _, h := range t.hosts {
		all[h.name] = h.Addresses()
	}
	return all
}

// Up builds a topology and returns when every link has answered a probe. On an
// error everything is undone. The topology must be valid (see
// [Topology.Validate]).
func Up(ctx context.Context, topo Topology, opt Options) (*Testbed, error) {
	l, err := newLayout(topo)
	if err != nil {
		return nil, err
	}
	if len(l.impaired) > 0 && opt.Backend == nil {
		return nil, fmt.Errorf("bring up %s: link %s is impaired but no backend was given", topo.Name, l.Links[l.impaired[0]].Name)
	}
	t := &Testbed{layout: l, run: opt.RunID, journal: opt.Journal, log: opt.Log, v6: hasIPv6(),
		byName: make(map[string]*Host, len(topo.Nodes))}
	if t.log == nil {
		t.log = func(string, ...any) {}
	}
	if err := t.up(ctx, opt); err != nil {
		return nil, errors.Join(fmt.Errorf("bring up %s: %w", topo.Name, err), t.Close())
	}
	return t, nil
}

// up takes the steps; each has registered its undoing when it fails or the
// next begins.
func (t *Testbed) up(ctx context.Context, opt Options) error {
	if err := t.openJournal(opt); err != nil {
		return err
	}
	t.starter = netns.NewStarter()
	t.acquired("end the thread that starts processes", func() error { t.starter.Close(); return nil })
	b := &builder{Testbed: t, off: offloadsOff(), mask: steeringMask(opt.Backend)}
	defer b.close()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"make namespaces", b.makeNamespaces},
		{"make links", b.makeLinks},
		{"configure nodes", b.configure},
		{"join impaired links", func(ctx context.Context) error { return b.join(ctx, opt) }},
		{"hear every link answer", func(ctx context.Context) error { return b.awaitAnswers(ctx, opt.Ready) }},
	} {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return err
		}
		t.log("%s: %s took %v", t.layout.Name, step.what, time.Since(start).Round(time.Microsecond))
	}
	return nil
}

func (t *Testbed) openJournal(opt Options) error {
	if t.journal == nil {
		j, err := journal.Create(cmp.Or(opt.Dir, journal.DefaultDir), opt.RunID, opt.Version)
		if err != nil {
			return err
		}
		t.journal = j
		t.acquired("remove the journal", j.Remove)
	}
	t.run = t.journal.Run()
	return nil
}

func (t *Testbed) nsDir() string { return filepath.Join(t.journal.Dir(), "ns") }
