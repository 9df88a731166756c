// Package topo makes ready graphs: dumbbell, chain, star, parking-lot, mesh.
//
// A graph is a plain configuration struct (see package attr for the tags) that
// the language decodes a topology block into; its Build returns the nodes and
// links. [Kinds] lists them. [LinkSpec] holds the attributes of every link,
// also of those in link blocks, and resolves them into one impairment per
// direction.
package topo

import (
	"fmt"
	"time"

	"wirelab/emul/attr"
	"wirelab/testbed"
)

// Graph is a decoded topology block.
type Graph interface {
	// Build returns the graph under a name. With problems that are not
	// warnings the topology must not be used.
	Build(name string) (testbed.Topology, []attr.Problem)
}

// Kind is one kind of ready graph.
type Kind struct {
	Name string // the first label of the block
	Doc  string // one paragraph for the language reference
	New  func() Graph
}

// Kinds lists the ready graphs.
func Kinds() []Kind {
	return []Kind{
		{"dumbbell", "Hosts left1, left2, … and right1, right2, … on two routers, router_left and router_right, " +
			"joined by the link bottleneck. Access links are access_left1, access_right1, …; forward is left to right on all links.",
			func() Graph { return new(Dumbbell) }},
		{"chain", "Hosts left and right with routers router1, router2, … (or bridges bridge1, …) between them; " +
			"links hop1, hop2, … from left to right.",
			func() Graph { return new(Chain) }},
		{"star", "Hosts host1, host2, … around a router or bridge called hub; links spoke1, spoke2, … from host to hub.",
			func() Graph { return new(Star) }},
		{"parking-lot", "Routers router1, router2, … in a row, joined by links bottleneck1, bottleneck2, …. Traffic from " +
			"long_source to long_sink crosses them all, from source1 to sink1 the first, and so on (RFC 5166, section 2.3). " +
			"Forward is from sources to sinks on all links.",
			func() Graph { return new(ParkingLot) }},
		{"mesh", "Routers router1, router2, … each joined with each by links mesh_1_2, mesh_1_3, … from the lower number to " +
			"the higher, and a host host1, host2, … at each by links access1, access2, … from host to router.",
			func() Graph { return new(Mesh) }},
	}
}

// maxNodes bounds the numbers in ready graphs: above it a typing mistake is
// more likely than a wish.
const maxNodes = 5000

// sketch collects nodes, links and problems.
type sketch struct {
	testbed.Topology
	problems []attr.Problem
}

func newSketch(name string) *sketch { return &sketch{Topology: testbed.Topology{Name: name}} }

func (s *sketch) node(kind testbed.NodeKind, format string, args ...any) string {
	n := testbed.Node{Name: fmt.Sprintf(format, args...), Kind: kind}
	s.Nodes = append(s.Nodes, n)
	return n.Name
}

func (s *sketch) link(a, b string, t template, format string, args ...any) {
	l := t.Link
	l.Name, l.A, l.B = fmt.Sprintf(format, args...), a, b
	s.Links = append(s.Links, l)
}

// template is a link without a name and ends: a block's attributes resolved
// once, for many links.
type template struct{ testbed.Link }

// resolve reads the block of a graph that describes links; nil is a link
// without impairments. rest is the RTT of the remaining path.
func (s *sketch) resolve(block string, spec *LinkSpec, rest time.Duration) template {
	if spec == nil {
		return template{}
	}
	l, problems := spec.link(rest)
	s.problems = append(s.problems, attr.Under(block, problems)...)
	return template{l}
}

func (s *sketch) number(name string, value, low, high int) bool {
	if value >= low && value <= high {
		return true
	}
	s.problems = append(s.problems, attr.At(name, "Bad number of "+name,
		"It must be between %d and %d, not %d.", low, high, value))
	return false
}

func (s *sketch) done() (testbed.Topology, []attr.Problem) { return s.Topology, s.problems }
