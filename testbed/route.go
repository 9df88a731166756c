package testbed

import (
	"math/bits"
	"net/netip"
)

// hop is where a route leads: out of an own end of a link, to the end of a
// neighbour on the same segment.
type hop struct {
	out, via end
}

// route is one entry of a node's table.
type route struct {
	v4, v6      netip.Prefix
	hop         hop
	unreachable bool
}

// reach holds a breadth-first walk from one node: the first hop to every
// segment. It is used again for every node.
type reach struct {
	g       *graph
	first   []int // per segment: number of its hop, or one of the marks below
	hops    []hop
	via     []int // per node: number of the hop by which it was first reached
	visited []int // per node: the walk (root + 1) that reached it
	last    []hop // per node: the last hop of the way to it
	queue   []int
}

const (
	notReached = -1
	connected  = -2
)

func newReach(g *graph) *reach {
	return &reach{
		g:       g,
		first:   make([]int, len(g.segments)),
		via:     make([]int, len(g.Nodes)),
		visited: make([]int, len(g.Nodes)),
		last:    make([]hop, len(g.Nodes)),
	}
}

// from walks from root over routers, nearest first; where two ways are as
// short, the link that comes first in the topology wins. Hosts and bridges do
// not forward packets, so the walk ends at hosts and never sees bridges.
func (r *reach) from(root int) {
	for i := range r.first {
		r.first[i] = notReached
	}
	r.hops = r.hops[:0]
	r.queue = append(r.queue[:0], root)
	r.visited[root] = root + 1
	for len(r.queue) > 0 {
		n := r.queue[0]
		r.queue = r.queue[1:]
		for _, e := range r.g.links[n] {
			s := r.g.segment[e.link]
			if r.first[s] != notReached {
				continue
			}
			r.first[s] = connected
			if n != root {
				r.first[s] = r.via[n]
			}
			r.enter(root, n, e, s)
		}
	}
}

// enter reaches the members of segment s from node n.
func (r *reach) enter(root, n int, e end, s int) {
	for _, m := range r.g.segments[s].members {
		p := r.g.nodeAt(m)
		if r.visited[p] == root+1 {
			continue
		}
		r.visited[p] = root + 1
		r.last[p] = hop{out: e, via: m}
		if n == root {
			r.hops = append(r.hops, hop{out: e, via: m})
			r.via[p] = len(r.hops) - 1
		} else {
			r.via[p] = r.via[n]
		}
		if r.g.isRouter(p) {
			r.queue = append(r.queue, p)
		}
	}
}

// routes is the smallest table that sends packets for every segment along the
// walk: the optimal one of Draves et al., "Constructing optimal IP routing
// tables" (INFOCOM 1999). Where a single next hop serves all, it is one entry.
// A host's widest entry becomes the default route.
func (r *reach) routes(node int) []route {
	t := &table{reach: r, words: (len(r.hops) + 1 + 63) / 64}
	depth := bits.Len32(r.g.unitsUsed() - 1)
	t.build(0, depth, 0, len(r.first))
	t.emit(0, depth, t.unreachable(), 0)
	for i := range t.out {
		if wide := &t.out[i]; r.g.Nodes[node].Kind == KindHost && wide.v4.Bits() == unitPrefix4-depth {
			wide.v4 = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
			wide.v6 = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
	}
	return t.out
}

// table is a binary tree over the address units. Every vertex has the set of
// hops that could be its route with the fewest entries below it.
type table struct {
	*reach
	words int // of a set
	sets  []uint64
	kids  [][2]int32 // per vertex: its halves; {0, 0} at leaves
	out   []route
}

// unreachable is the number, after those of the hops, of "no route".
func (t *table) unreachable() int { return len(t.hops) }

// build makes the vertex for the 2^size units from start, which hold the
// segments lo to hi, and returns its number.
func (t *table) build(start uint32, size, lo, hi int) int32 {
	v := int32(len(t.kids))
	t.kids = append(t.kids, [2]int32{})
	t.sets = append(t.sets, make([]uint64, t.words)...)
	if lo == hi {
		t.fill(v)
		return v
	}
	if s := t.g.segments[lo]; hi == lo+1 && s.start == start && s.size == 1<<size {
		switch f := t.first[lo]; f {
		case connected: // the kernel's own route is more specific than any
			t.fill(v)
		case notReached:
			t.add(v, t.unreachable())
		default:
			t.add(v, f)
		}
		return v
	}
	half := start + 1<<(size-1)
	mid := lo
	for mid < hi && t.g.segments[mid].start < half {
		mid++
	}
	a := t.build(start, size-1, lo, mid)
	b := t.build(half, size-1, mid, hi)
	t.kids[v] = [2]int32{a, b}
	t.join(v, a, b)
	return v
}

func (t *table) set(v int32) []uint64 {
	return t.sets[int(v)*t.words : (int(v)+1)*t.words]
}

func (t *table) add(v int32, hop int) { t.set(v)[hop/64] |= 1 << (hop % 64) }

func (t *table) has(v int32, hop int) bool { return t.set(v)[hop/64]&(1<<(hop%64)) != 0 }

// fill makes a vertex that does not care.
func (t *table) fill(v int32) {
	for i := range t.set(v) {
		t.set(v)[i] = ^uint64(0)
	}
}

// join sets v to what a and b have in common or, if nothing, to all of both.
func (t *table) join(v, a, b int32) {
	dst, x, y := t.set(v), t.set(a), t.set(b)
	var common uint64
	for i := range dst {
		dst[i] = x[i] & y[i]
		common |= dst[i]
	}
	if common != 0 {
		return
	}
	for i := range dst {
		dst[i] = x[i] | y[i]
	}
}

// emit appends the routes of v, given the hop that the route above it has.
func (t *table) emit(start uint32, size, above int, v int32) {
	if !t.has(v, above) {
		above = t.lowest(v)
		v4, v6 := prefixes(start, size)
		r := route{v4: v4, v6: v6, unreachable: above == t.unreachable()}
		if !r.unreachable {
			r.hop = t.hops[above]
		}
		t.out = append(t.out, r)
	}
	if kids := t.kids[v]; kids != [2]int32{} {
		t.emit(start, size-1, above, kids[0])
		t.emit(start+1<<(size-1), size-1, above, kids[1])
	}
}

func (t *table) lowest(v int32) int {
	for i, w := range t.set(v) {
		if w != 0 {
			return i*64 + bits.TrailingZeros64(w)
		}
	}
	panic("testbed: a vertex of the routing table has no hop")
}
