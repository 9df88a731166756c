package testbed

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// randomGraph has routers, hosts and bridges joined by a random tree and a few
// links more; bridges never form loops.
func randomGraph(r *rand.Rand, nodes, extra int) Topology {
	t := Topology{Name: "random"}
	for i := range nodes {
		kind := KindRouter
		switch r.IntN(6) {
		case 0:
			kind = KindBridge
		case 1:
			kind = KindHost
		}
		t.Nodes = append(t.Nodes, Node{Name: fmt.Sprintf("n%d", i), Kind: kind})
		if i > 0 {
			t.Links = append(t.Links, Link{Name: fmt.Sprintf("tree%d", i), A: fmt.Sprintf("n%d", r.IntN(i)), B: fmt.Sprintf("n%d", i)})
		}
	}
	for i := range extra {
		a, b := r.IntN(nodes), r.IntN(nodes)
		if a != b && t.Nodes[a].Kind != KindBridge && t.Nodes[b].Kind != KindBridge {
			t.Links = append(t.Links, Link{Name: fmt.Sprintf("extra%d", i), A: t.Nodes[a].Name, B: t.Nodes[b].Name})
		}
	}
	return t
}

// forwarding looks addresses up in the routing tables that Up would install.
type forwarding struct {
	*graph
	tables [][]route
	owner  map[netip.Addr]int
}

func newForwarding(t *testing.T, topo Topology) *forwarding {
	t.Helper()
	g, err := newGraph(topo)
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarding{graph: g, tables: make([][]route, len(topo.Nodes)), owner: map[netip.Addr]int{}}
	r := newReach(g)
	for n := range topo.Nodes {
		if !g.isBridge(n) {
			r.from(n)
			f.tables[n] = r.routes(n)
			for _, a := range g.addressesOf(n) {
				f.owner[a.IPv4.Addr()], f.owner[a.IPv6.Addr()] = n, n
			}
		}
	}
	return f
}

// next is the node that n hands a packet for dst to; n itself when delivered,
// -1 when there is no route.
func (f *forwarding) next(n int, dst netip.Addr) int {
	if f.owner[dst] == n {
		return n
	}
	for _, a := range f.addressesOf(n) {
		if a.IPv4.Contains(dst) || a.IPv6.Contains(dst) {
			return f.owner[dst]
		}
	}
	best, length := -1, -1
	for _, r := range f.tables[n] {
		for _, p := range []netip.Prefix{r.v4, r.v6} {
			if p.Contains(dst) && p.Bits() > length {
				length, best = p.Bits(), -1
				if !r.unreachable {
					best = f.nodeAt(r.hop.via)
				}
			}
		}
	}
	return best
}

func TestRoutesFollowTheShortestWay(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		topo := randomGraph(r, 2+r.IntN(40), r.IntN(20))
		f := newForwarding(t, topo)
		walk := newReach(f.graph)
		for from := range topo.Nodes {
			if f.isBridge(from) {
				continue
			}
			walk.from(from)
			for dst, to := range f.owner {
				s := f.segmentOf(dst)
				got := f.hops(from, dst)
				switch want := walk.first[s]; {
				case want == notReached && from != to:
					if got != -1 {
						t.Fatalf("seed %d: %s reaches %s (%s) in %d hops over a host", seed, topo.Nodes[from].Name, dst, topo.Nodes[to].Name, got)
					}
				case got < 0:
					t.Fatalf("seed %d: no way from %s to %s (%s)", seed, topo.Nodes[from].Name, dst, topo.Nodes[to].Name)
				case got > f.distance(from, s):
					t.Fatalf("seed %d: %s to %s takes %d hops, want at most %d", seed, topo.Nodes[from].Name, dst, got, f.distance(from, s))
				}
			}
		}
	}
}

func (f *forwarding) segmentOf(a netip.Addr) int {
	for i := range f.Links {
		for side := range 2 {
			if f.address[i][side] == 0 {
				continue
			}
			if x := f.addressAt(end{i, side}); x.IPv4.Addr() == a || x.IPv6.Addr() == a {
				return f.segment[i]
			}
		}
	}
	return -1
}

// hops walks the tables and returns the number of hops, -1 without a route or
// with a loop.
func (f *forwarding) hops(from int, dst netip.Addr) int {
	for n, hops := from, 0; hops <= len(f.Nodes); hops++ {
		next := f.next(n, dst)
		if next == n {
			return hops
		}
		if next < 0 || hops > 0 && !f.isRouter(n) {
			return -1
		}
		n = next
	}
	return -1
}

// distance is the number of hops to any address of a segment: to the nearest
// node on it that forwards, and across it.
func (f *forwarding) distance(from, segment int) int {
	level := map[int]bool{from: true}
	seen := map[int]bool{}
	for d := 1; len(level) > 0; d++ {
		next := map[int]bool{}
		for n := range level {
			seen[n] = true
			for _, e := range f.links[n] {
				if n != from && !f.isRouter(n) {
					continue
				}
				if f.segment[e.link] == segment {
					return d
				}
				for _, m := range f.segments[f.segment[e.link]].members {
					if p := f.nodeAt(m); !seen[p] {
						next[p] = true
					}
				}
			}
		}
		level = next
	}
	return -1
}

func TestRoutesOfAChainAreFew(t *testing.T) {
	const nodes = 1001
	topo := chainOf(nodes)
	f := newForwarding(t, topo)
	total := 0
	for n, table := range f.tables {
		if len(table) > 20 {
			t.Errorf("node %d has %d routes", n, len(table))
		}
		total += len(table)
	}
	if total > 11*nodes {
		t.Errorf("%d routes in all", total)
	}
	if r := f.tables[0]; len(r) != 1 || r[0].v4.Bits() != 0 || r[0].v6.Bits() != 0 {
		t.Errorf("the host at the end has routes %v, want one default route", r)
	}
	if got := f.hops(0, f.addressesOf(nodes - 1)[0].IPv4.Addr()); got != nodes-1 {
		t.Errorf("end to end takes %d hops, want %d", got, nodes-1)
	}
}

func TestPath(t *testing.T) {
	topo := Topology{
		Nodes: []Node{{Name: "a", Kind: KindHost}, {Name: "b1", Kind: KindBridge}, {Name: "b2", Kind: KindBridge},
			{Name: "r", Kind: KindRouter}, {Name: "z", Kind: KindHost}, {Name: "lone", Kind: KindHost}, {Name: "behind", Kind: KindHost}},
		Links: []Link{{Name: "ab", A: "a", B: "b1"}, {Name: "bb", A: "b2", B: "b1"}, {Name: "br", A: "r", B: "b2"},
			{Name: "rz", A: "r", B: "z"}, {Name: "zl", A: "z", B: "behind"}, {Name: "lb", A: "lone", B: "b1"}},
	}
	for _, c := range []struct{ from, to, want string }{
		{"a", "z", "[{ab true} {bb false} {br false} {rz true}]"},
		{"z", "a", "[{rz false} {br true} {bb true} {ab false}]"},
		{"a", "lone", "[{ab true} {lb false}]"},
		{"a", "a", "[]"},
		{"z", "behind", "[{zl true}]"},
	} {
		got, err := topo.Path(c.from, c.to)
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("path %s to %s = %v, %v, want %s", c.from, c.to, got, err, c.want)
		}
	}
	for _, c := range [][2]string{{"a", "behind"}, {"a", "nobody"}} {
		if got, err := topo.Path(c[0], c[1]); err == nil {
			t.Errorf("path %s to %s = %v, want an error", c[0], c[1], got)
		}
	}
}

func BenchmarkRoutes(b *testing.B) {
	topo := chainOf(1001)
	for b.Loop() {
		g, err := newGraph(topo)
		if err != nil {
			b.Fatal(err)
		}
		r := newReach(g)
		for n := range topo.Nodes {
			r.from(n)
			r.routes(n)
		}
	}
}
