package topo

import (
	"time"

	"wirelab/emul/attr"
	"wirelab/testbed"
)

// rttOf is the RTT that a block of link attributes adds, 0 for none.
func rttOf(s *LinkSpec) time.Duration {
	if s == nil {
		return 0
	}
	forward, reverse, _ := s.Resolve()
	return forward.Delay + reverse.Delay
}

// Dumbbell has hosts on two sides of one bottleneck.
type Dumbbell struct {
	Hosts      int       `hcl:"hosts,optional" default:"1" doc:"Hosts on each side."`
	Bottleneck *LinkSpec `hcl:"bottleneck,block" doc:"The link between the routers."`
	Access     *LinkSpec `hcl:"access,block" doc:"Every link between a host and its router; without impairments unless given."`
}

var _ Graph = (*Dumbbell)(nil)

// Build implements Graph.
func (d *Dumbbell) Build(name string) (testbed.Topology, []attr.Problem) {
	s := newSketch(name)
	if !s.number("hosts", d.Hosts, 1, maxNodes/2) {
		return s.done()
	}
	bottleneck := s.resolve("bottleneck", d.Bottleneck, 2*rttOf(d.Access))
	access := s.resolve("access", d.Access, rttOf(d.Bottleneck)+rttOf(d.Access))
	left := s.node(testbed.KindRouter, "router_left")
	right := s.node(testbed.KindRouter, "router_right")
	s.link(left, right, bottleneck, "bottleneck")
	for i := 1; i <= d.Hosts; i++ {
		s.link(s.node(testbed.KindHost, "left%d", i), left, access, "access_left%d", i)
	}
	for i := 1; i <= d.Hosts; i++ {
		s.link(right, s.node(testbed.KindHost, "right%d", i), access, "access_right%d", i)
	}
	return s.done()
}

// Chain has forwarding nodes in a row between two hosts.
type Chain struct {
	Hops   int       `hcl:"hops,optional" default:"2" doc:"Number of links from end to end."`
	Middle string    `hcl:"middle,optional" default:"router" doc:"Kind of the nodes between: \"router\" or \"bridge\"."`
	Link   *LinkSpec `hcl:"link,block" doc:"Every link; without impairments unless given."`
}

var _ Graph = (*Chain)(nil)

// Build implements Graph.
func (c *Chain) Build(name string) (testbed.Topology, []attr.Problem) {
	s := newSketch(name)
	kind := s.forwarder("middle", c.Middle)
	if !s.number("hops", c.Hops, 1, maxNodes) {
		return s.done()
	}
	link := s.resolve("link", c.Link, time.Duration(c.Hops-1)*rttOf(c.Link))
	before := s.node(testbed.KindHost, "left")
	for i := 1; i < c.Hops; i++ {
		n := s.node(kind, "%s%d", kind, i)
		s.link(before, n, link, "hop%d", i)
		before = n
	}
	s.link(before, s.node(testbed.KindHost, "right"), link, "hop%d", c.Hops)
	return s.done()
}

// forwarder reads an attribute that names a kind of node which forwards.
func (s *sketch) forwarder(name, value string) testbed.NodeKind {
	switch k := testbed.NodeKind(value); k {
	case testbed.KindRouter, testbed.KindBridge:
		return k
	case "":
		return testbed.KindRouter
	}
	s.problems = append(s.problems, attr.At(name, "Bad kind of node", "It must be \"router\" or \"bridge\", not %q.", value))
	return testbed.KindRouter
}

// Star has hosts around one router or bridge.
type Star struct {
	Hosts int       `hcl:"hosts,optional" default:"3" doc:"Number of hosts."`
	Hub   string    `hcl:"hub,optional" default:"router" doc:"Kind of the node in the middle: \"router\" or \"bridge\"."`
	Link  *LinkSpec `hcl:"link,block" doc:"Every link; without impairments unless given."`
}

var _ Graph = (*Star)(nil)

// Build implements Graph.
func (g *Star) Build(name string) (testbed.Topology, []attr.Problem) {
	s := newSketch(name)
	kind := s.forwarder("hub", g.Hub)
	if !s.number("hosts", g.Hosts, 2, maxNodes) {
		return s.done()
	}
	link := s.resolve("link", g.Link, rttOf(g.Link))
	hub := s.node(kind, "hub")
	for i := 1; i <= g.Hosts; i++ {
		s.link(s.node(testbed.KindHost, "host%d", i), hub, link, "spoke%d", i)
	}
	return s.done()
}

// ParkingLot has several bottlenecks in a row, with a path across all of them
// and one across each.
type ParkingLot struct {
	Hops       int       `hcl:"hops,optional" default:"3" doc:"Number of bottlenecks."`
	Bottleneck *LinkSpec `hcl:"bottleneck,block" doc:"Every link between two routers."`
	Access     *LinkSpec `hcl:"access,block" doc:"Every link between a host and its router; without impairments unless given."`
}

var _ Graph = (*ParkingLot)(nil)

// Build implements Graph.
func (p *ParkingLot) Build(name string) (testbed.Topology, []attr.Problem) {
	s := newSketch(name)
	if !s.number("hops", p.Hops, 1, maxNodes/3) {
		return s.done()
	}
	hop, edge := rttOf(p.Bottleneck), rttOf(p.Access)
	bottleneck := s.resolve("bottleneck", p.Bottleneck, time.Duration(p.Hops-1)*hop+2*edge)
	access := s.resolve("access", p.Access, time.Duration(p.Hops)*hop+edge)
	routers := make([]string, p.Hops+1)
	for i := range routers {
		routers[i] = s.node(testbed.KindRouter, "router%d", i+1)
		if i > 0 {
			s.link(routers[i-1], routers[i], bottleneck, "bottleneck%d", i)
		}
	}
	s.link(s.node(testbed.KindHost, "long_source"), routers[0], access, "access_long_source")
	s.link(routers[p.Hops], s.node(testbed.KindHost, "long_sink"), access, "access_long_sink")
	for i := 1; i <= p.Hops; i++ {
		s.link(s.node(testbed.KindHost, "source%d", i), routers[i-1], access, "access_source%d", i)
		s.link(routers[i], s.node(testbed.KindHost, "sink%d", i), access, "access_sink%d", i)
	}
	return s.done()
}

// Mesh has a link between every two routers, and a host at each.
type Mesh struct {
	Routers int       `hcl:"routers,optional" default:"4" doc:"Number of routers, and of hosts."`
	Link    *LinkSpec `hcl:"link,block" doc:"Every link between two routers; without impairments unless given."`
	Access  *LinkSpec `hcl:"access,block" doc:"Every link between a host and its router; without impairments unless given."`
}

var _ Graph = (*Mesh)(nil)

// Build implements Graph.
func (m *Mesh) Build(name string) (testbed.Topology, []attr.Problem) {
	s := newSketch(name)
	const most = 100 // 4950 links
	if !s.number("routers", m.Routers, 2, most) {
		return s.done()
	}
	link := s.resolve("link", m.Link, 2*rttOf(m.Access))
	access := s.resolve("access", m.Access, rttOf(m.Link)+rttOf(m.Access))
	routers := make([]string, m.Routers+1)
	for i := 1; i <= m.Routers; i++ {
		routers[i] = s.node(testbed.KindRouter, "router%d", i)
	}
	for i := 1; i <= m.Routers; i++ {
		s.link(s.node(testbed.KindHost, "host%d", i), routers[i], access, "access%d", i)
	}
	for i := 1; i <= m.Routers; i++ {
		for k := i + 1; k <= m.Routers; k++ {
			s.link(routers[i], routers[k], link, "mesh_%d_%d", i, k)
		}
	}
	return s.done()
}
