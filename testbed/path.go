package testbed

import (
	"fmt"
	"slices"
)

// Hop is one link of a path, crossed forward (A to B) or not.
type Hop struct {
	Link    string
	Forward bool
}

// Path returns the links that packets cross between two nodes, in order, or an
// error that says why there is no way. Links between the bridges of a segment
// are included.
func (t Topology) Path(from, to string) ([]Hop, error) {
	g, err := newGraph(t)
	if err != nil {
		return nil, err
	}
	a, okA := g.node[from]
	b, okB := g.node[to]
	if !okA || !okB {
		return nil, fmt.Errorf("path from %q to %q: no such node in topology %s", from, to, t.Name)
	}
	r := newReach(g)
	r.from(a)
	if r.visited[b] != a+1 {
		return nil, fmt.Errorf("there is no way from %q to %q: only routers (kind = \"router\") and bridges forward", from, to)
	}
	var path []Hop
	for n := b; n != a; {
		h := r.last[n]
		path = append(path, g.across(h)...)
		n = g.nodeAt(h.out)
	}
	slices.Reverse(path)
	return path, nil
}

// across returns the links of a segment between two of its members, last
// first. Bridges do not form loops, so that there is one way.
func (g *graph) across(h hop) []Hop {
	start, goal := g.nodeAt(h.out), h.via.link
	came := map[int]end{} // bridge: the end by which the walk left the node before
	var path []Hop
	for queue := []end{h.out}; len(queue) > 0; queue = queue[1:] {
		e := queue[0]
		if e.link == goal {
			for n := -1; n != start; n = g.nodeAt(e) {
				if n >= 0 {
					e = came[n]
				}
				path = append(path, Hop{g.Links[e.link].Name, e.side == 0})
			}
			break
		}
		bridge := g.peerOf(e)
		if _, seen := came[bridge]; seen || !g.isBridge(bridge) {
			continue
		}
		came[bridge] = e
		for _, next := range g.links[bridge] {
			if next.link != e.link {
				queue = append(queue, next)
			}
		}
	}
	return path
}
