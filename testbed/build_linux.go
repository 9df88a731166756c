package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/testbed/journal"
	"wirelab/testbed/netns"
)

// builder holds what only the building of a testbed needs.
type builder struct {
	*Testbed
	batches []*batch // per node, a socket in its namespace
	wires   *batch   // in the wire namespace
	// The offloads that the impaired links' devices lose.
	features features
	off      []string
	mask     string // the processors that take what arrives at the wires
	steer    bool   // the wires inherit no steering
}

// close gives the sockets back.
func (b *builder) close() {
	for _, x := range append(b.batches, b.wires) {
		if x != nil {
			_ = x.close()
		}
	}
}

// each runs fn for the numbers below n on a few goroutines at a time.
func each(ctx context.Context, n int, fn func(i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	workers := min(n, 2*runtime.GOMAXPROCS(0))
	for w := range workers {
		g.Go(func() error {
			for i := w; i < n; i += workers {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := fn(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// makeNamespaces makes one per node, and one for the wires if there are any,
// names them in the run's directory and sets their sysctls.
func (b *builder) makeNamespaces(ctx context.Context) error {
	l := b.layout
	if err := raiseFileLimit(4*len(l.Nodes) + 8*len(l.impaired) + 256); err != nil {
		return err
	}
	if err := b.journal.Add(journal.Step{Op: journal.OpRemove, Path: b.nsDir()},
		journal.Step{Op: journal.OpTagged, Tag: Tag(b.run)}); err != nil {
		return err
	}
	if err := os.Mkdir(b.nsDir(), 0o755); err != nil {
		return err
	}
	b.acquired("remove the names of the namespaces", func() error { return os.RemoveAll(b.nsDir()) })
	b.acquired("close the namespaces", b.closeNamespaces)
	b.acquired("end the processes", b.endProcesses)
	b.hosts = make([]*Host, len(l.Nodes))
	b.batches = make([]*batch, len(l.Nodes))
	err := each(ctx, len(l.Nodes), b.makeNode)
	if err == nil && len(l.impaired) > 0 {
		err = b.makeWire()
	}
	if err != nil {
		return err
	}
	for _, h := range b.hosts {
		b.byName[h.name] = h
	}
	return b.journal.Add(b.namespaceSteps()...)
}

func (b *builder) makeNode(i int) error {
	node := b.layout.Nodes[i]
	early, _ := userSysctls(node, nil)
	n, err := netns.New(func(*netns.NS) error {
		var err error
		if b.batches[i], err = openBatch(); err != nil {
			return err
		}
		if err := set(nodeSysctls(node.Kind, b.v6, b.layout.isDeep())); err != nil {
			return err
		}
		return set(early)
	})
	if err != nil {
		return fmt.Errorf("node %s: %w", node.Name, err)
	}
	h := &Host{name: node.Name, kind: node.Kind, ns: n, t: b.Testbed, addresses: b.layout.addressesOf(i)}
	if !b.v6 {
		for k := range h.addresses {
			h.addresses[k].IPv6 = netip.Prefix{}
		}
	}
	b.hosts[i] = h
	return n.Link(h.Path())
}

// wireNamespace names the wires' namespace in the run's directory; no node can
// have this name.
const wireNamespace = ".wire"

func (b *builder) makeWire() error {
	n, err := netns.New(func(*netns.NS) error {
		var err error
		if b.wires, err = openBatch(); err != nil {
			return err
		}
		var s []sysctl
		if b.v6 {
			s = noIPv6()
		}
		if err := set(s); err != nil {
			return err
		}
		err = set([]sysctl{{steerDefault, b.mask, false}})
		if errors.Is(err, unix.ENOENT) {
			b.steer = true
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wire namespace: %w", err)
	}
	b.wire = n
	return n.Link(filepath.Join(b.nsDir(), wireNamespace))
}

// namespaceSteps lets clean find processes that hold on to the namespaces.
func (b *builder) namespaceSteps() []journal.Step {
	steps := make([]journal.Step, 0, len(b.hosts)+1)
	for _, h := range b.hosts {
		id := h.ns.ID()
		steps = append(steps, journal.Step{Op: journal.OpNamespace, Name: h.name, Inode: id.Inode, Cookie: id.Cookie})
	}
	if b.wire != nil {
		id := b.wire.ID()
		steps = append(steps, journal.Step{Op: journal.OpNamespace, Name: wireNamespace, Inode: id.Inode, Cookie: id.Cookie})
	}
	return steps
}

// makeLinks makes all veth pairs, from the namespace of their A side. Both
// ends are born inside their namespaces with their final names and addresses,
// where no daemon of the host can meet them.
func (b *builder) makeLinks(ctx context.Context) error {
	l := b.layout
	return each(ctx, len(l.Nodes), func(n int) error {
		q := b.batches[n]
		if l.isBridge(n) {
			if err := q.add("make bridge "+l.Nodes[n].Name, bridgeRequest(firstIndex)); err != nil {
				return err
			}
		}
		for _, e := range l.links[n] {
			own, what := l.devices[e.link][e.side], "make link "+l.Links[e.link].Name
			var err error
			switch {
			case l.isImpaired(e.link):
				err = q.add(what, vethRequest(own, l.wires[e.link][e.side], b.wire.FD(), l.mtu(e.link)))
			case e.side == 0:
				err = q.add(what, vethRequest(own, l.devices[e.link][1], b.hosts[l.peerOf(e)].ns.FD(), l.mtu(e.link)))
			}
			if err != nil {
				return err
			}
		}
		return q.flush()
	})
}

// join hands the wire's devices to the backend.
func (b *builder) join(ctx context.Context, opt Options) error {
	l := b.layout
	if len(l.impaired) == 0 {
		return nil
	}
	held := new(sockets)
	b.acquired("close the packet sockets", held.close)
	cables := make([]emul.Cable, 0, len(l.impaired))
	for _, i := range l.impaired {
		link := l.Links[i]
		c := emul.Cable{
			Name: link.Name, MTU: l.mtu(i), Mode: link.Mode, Seed: linkSeed(opt.Seed, link.Name),
			Forward: link.Forward, Reverse: link.Reverse,
			A: &port{b.wire, l.wires[i][0], held}, B: &port{b.wire, l.wires[i][1], held},
		}
		if link.EventLog && opt.EventLog != nil {
			c.EventLog = opt.EventLog(link.Name)
		}
		cables = append(cables, c)
	}
	session, err := opt.Backend.Join(ctx, cables)
	if err != nil {
		return err
	}
	b.session = session
	b.acquired("close the "+opt.Backend.Name()+" backend", session.Close)
	if pid := session.PID(); pid != 0 {
		// If it is gone already, its Done says so.
		if start, err := journal.StartTime(pid); err == nil {
			return b.journal.Add(journal.Step{Op: journal.OpProcess, Name: "forwarder", PID: pid, Start: start})
		}
	}
	return nil
}

// raiseFileLimit makes room for a testbed's descriptors.
func raiseFileLimit(need int) error {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil || lim.Cur >= uint64(need) {
		return err
	}
	lim.Cur = uint64(need)
	lim.Max = max(lim.Max, lim.Cur)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return fmt.Errorf("the topology needs %d open files: %w: raise the limit (ulimit -n)", need, err)
	}
	return nil
}
