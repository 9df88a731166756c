package testbed

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
)

// configure brings devices up and gives nodes their addresses, routes and
// neighbours.
func (b *builder) configure(ctx context.Context) error {
	l := b.layout
	for _, i := range l.impaired {
		for side := range 2 {
			alias := Alias(b.run, l.Links[i].Name)
			if err := b.wires.add("bring up wire of "+l.Links[i].Name, upRequest(l.wires[i][side], alias, 0)); err != nil {
				return err
			}
		}
	}
	if b.wires != nil {
		if err := b.wires.flush(); err != nil {
			return err
		}
	}
	if b.steer {
		var names []string
		for _, i := range l.impaired {
			names = append(names, l.wires[i][0].name, l.wires[i][1].name)
		}
		if err := steer(b.wire, names, b.mask); err != nil {
			b.log("%v: packets of a flow may overtake each other", err)
		}
	}
	walks := make(chan *reach, 64)
	return each(ctx, len(l.Nodes), func(n int) error {
		var walk *reach
		select {
		case walk = <-walks:
		default:
			walk = newReach(l.graph)
		}
		err := b.configureNode(n, walk)
		select {
		case walks <- walk:
		default:
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", l.Nodes[n].Name, err)
		}
		return nil
	})
}

func (b *builder) configureNode(n int, walk *reach) error {
	l, q := b.layout, b.batches[n]
	master := 0
	errs := []error{q.add("bring up lo", upRequest(device{index: 1}, "", 0))}
	if l.isBridge(n) {
		master = firstIndex
		errs = append(errs, q.add("bring up the bridge", upRequest(device{index: firstIndex}, "", 0)))
	}
	if err := b.prepareDevices(n); err != nil {
		return err
	}
	for _, e := range l.links[n] {
		link := l.Links[e.link]
		errs = append(errs, q.add("bring up "+link.Name, upRequest(l.devices[e.link][e.side], Alias(b.run, link.Name), master)))
		if master == 0 {
			errs = append(errs, b.addAddress(q, e), b.addNeighbours(q, e))
		}
	}
	if master == 0 {
		walk.from(n)
		for _, r := range walk.routes(n) {
			errs = append(errs, b.addRoute(q, r))
		}
	}
	return errors.Join(append(errs, q.flush())...)
}

// prepareDevices does what must precede a device's coming up and has no
// netlink request: sysctls of the device, offloads.
func (b *builder) prepareDevices(n int) error {
	l := b.layout
	names := make(map[string]string, len(l.links[n]))
	var list []sysctl
	var trim []string
	for _, e := range l.links[n] {
		d := l.devices[e.link][e.side]
		if l.isImpaired(e.link) {
			trim = append(trim, d.name)
		}
		names[l.Links[e.link].Name] = d.name
		if b.v6 && l.Links[e.link].DAD && !l.isBridge(n) {
			list = append(list, sysctl{"net/ipv6/conf/" + d.name + "/accept_dad", "1", false})
		}
	}
	if len(trim) > 0 {
		if err := b.features.trimOffloads(b.hosts[n].ns, trim, b.off); err != nil {
			return err
		}
	}
	_, late := userSysctls(l.Nodes[n], names)
	if list = append(list, late...); len(list) == 0 {
		return nil
	}
	return b.hosts[n].Do(func() error { return set(list) })
}

func (b *builder) addAddress(q *batch, e end) error {
	link := b.layout.Links[e.link]
	index, a := b.layout.devices[e.link][e.side].index, b.layout.addressAt(e)
	err := q.add("address "+a.IPv4.String(), addressRequest(index, a.IPv4, false))
	if err == nil && b.v6 && a.IPv6.IsValid() {
		err = q.add("address "+a.IPv6.String(), addressRequest(index, a.IPv6, link.DAD))
	}
	return err
}

func (b *builder) addNeighbours(q *batch, e end) error {
	index := b.layout.devices[e.link][e.side].index
	for _, m := range b.layout.neighbours(e) {
		a, mac := b.layout.addressAt(m), b.layout.devices[m.link][m.side].mac
		err := q.add("neighbour "+a.IPv4.String(), neighbourRequest(index, a.IPv4.Addr(), mac))
		if err == nil && b.v6 && a.IPv6.IsValid() {
			err = q.add("neighbour "+a.IPv6.String(), neighbourRequest(index, a.IPv6.Addr(), mac))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) addRoute(q *batch, r route) error {
	if r.unreachable {
		err := q.add("route "+r.v4.String(), routeRequest(r.v4, netip.Addr{}, 0))
		if err == nil && b.v6 {
			err = q.add("route "+r.v6.String(), routeRequest(r.v6, netip.Addr{}, 0))
		}
		return err
	}
	index, via := b.layout.devices[r.hop.out.link][r.hop.out.side].index, b.layout.addressAt(r.hop.via)
	err := q.add("route "+r.v4.String(), routeRequest(r.v4, via.IPv4.Addr(), index))
	if err == nil && b.v6 && via.IPv6.IsValid() {
		err = q.add("route "+r.v6.String(), routeRequest(r.v6, via.IPv6.Addr(), index))
	}
	return err
}
