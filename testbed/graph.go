package testbed

import (
	"fmt"
	"slices"
)

const (
	defaultMTU = 1500
	minIPv6MTU = 1280 // RFC 8200, section 5

	// MinMTU and MaxMTU bound what a link may carry, in bytes of IP packet: the
	// smallest of RFC 791, the largest of a veth device.
	MinMTU = 68
	MaxMTU = 65535

	maxHops     = 255 // an IP header's hop limit has eight bits
	defaultHops = 64  // what hosts usually write into it
)

// end is one end of a link.
type end struct {
	link int
	side int // 0: A, 1: B
}

// segment is what one subnet covers: a link between hosts or routers, or all
// links that bridges join.
type segment struct {
	links   []int
	members []end // ends at hosts and routers, in the order of the links
	// The subnet: size units of four IPv4 addresses from unit start; size is a
	// power of two that divides start.
	start, size uint32
}

// graph is a topology with its names resolved. Numbers are positions in the
// topology's slices.
type graph struct {
	Topology
	node     map[string]int
	ends     [][2]int // per link: its nodes
	links    [][]end  // per node: its ends of links, in the order of the links
	segments []segment
	segment  []int       // per link
	address  [][2]uint32 // per link and side: host number in the subnet, from 1; 0 at bridges
}

// newGraph resolves the names. Links with an unknown or repeated node are left
// out of everything but the error.
func newGraph(t Topology) (*graph, error) {
	g := &graph{
		Topology: t,
		node:     make(map[string]int, len(t.Nodes)),
		ends:     make([][2]int, len(t.Links)),
		links:    make([][]end, len(t.Nodes)),
	}
	for i, n := range t.Nodes {
		if _, twice := g.node[n.Name]; twice {
			return nil, fmt.Errorf("topology %s: two nodes are called %q", t.Name, n.Name)
		}
		g.node[n.Name] = i
	}
	for i, l := range t.Links {
		for side, name := range [2]string{l.A, l.B} {
			n, known := g.node[name]
			if !known {
				return nil, fmt.Errorf("topology %s: link %q: there is no node %q", t.Name, l.Name, name)
			}
			g.ends[i][side] = n
			g.links[n] = append(g.links[n], end{i, side})
		}
		if l.A == l.B {
			return nil, fmt.Errorf("topology %s: link %q joins %q with itself", t.Name, l.Name, l.A)
		}
	}
	g.findSegments()
	return g, nil
}

func (g *graph) isBridge(node int) bool { return g.Nodes[node].Kind == KindBridge }
func (g *graph) isRouter(node int) bool { return g.Nodes[node].Kind == KindRouter }

// nodeAt is the node at an end; peerOf the one across.
func (g *graph) nodeAt(e end) int { return g.ends[e.link][e.side] }
func (g *graph) peerOf(e end) int { return g.ends[e.link][1-e.side] }

func (g *graph) mtu(link int) int {
	if m := g.Links[link].MTU; m > 0 {
		return m
	}
	return defaultMTU
}

// findSegments joins links that meet at a bridge and numbers the segments in
// the order of a depth-first walk, so that what lies behind a link of a tree or
// chain has consecutive numbers and the routes to it aggregate.
func (g *graph) findSegments() {
	g.segment = make([]int, len(g.Links))
	for i := range g.segment {
		g.segment[i] = -1
	}
	g.address = make([][2]uint32, len(g.Links))
	type step struct{ node, link int }
	seen := make([]bool, len(g.Nodes))
	for root := range g.Nodes {
		stack := []step{{root, -1}}
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if at.link >= 0 && g.segment[at.link] < 0 {
				g.addSegment(at.link)
			}
			if seen[at.node] {
				continue
			}
			seen[at.node] = true
			for _, e := range slices.Backward(g.links[at.node]) {
				if p := g.peerOf(e); !seen[p] || g.segment[e.link] < 0 {
					stack = append(stack, step{p, e.link})
				}
			}
		}
	}
	g.allocate()
}

// addSegment starts a segment with a link and takes in all links that bridges
// join to it.
func (g *graph) addSegment(first int) {
	number := len(g.segments)
	s := segment{links: []int{first}}
	g.segment[first] = number
	for i := 0; i < len(s.links); i++ {
		for side := range 2 {
			n := g.ends[s.links[i]][side]
			if !g.isBridge(n) {
				continue
			}
			for _, e := range g.links[n] {
				if g.segment[e.link] < 0 {
					g.segment[e.link] = number
					s.links = append(s.links, e.link)
				}
			}
		}
	}
	slices.Sort(s.links)
	for _, l := range s.links {
		for side := range 2 {
			if !g.isBridge(g.ends[l][side]) {
				s.members = append(s.members, end{l, side})
				g.address[l][side] = uint32(len(s.members))
			}
		}
	}
	g.segments = append(g.segments, s)
}

// isDeep reports whether packets may meet more routers than the usual hop limit
// allows.
func (g *graph) isDeep() bool {
	routers := 0
	for n := range g.Nodes {
		if g.isRouter(n) {
			routers++
		}
	}
	return routers >= defaultHops
}
