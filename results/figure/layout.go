package figure

import (
	"math"
	"slices"

	"wirelab/results"
)

// maxDrawn bounds the nodes that are drawn; larger graphs are summed up.
const maxDrawn = 60

// rowLength bounds the nodes of a spine on one row; longer chains turn back.
const rowLength = 8

// graph is a diagram as indices.
type graph struct {
	names []string
	index map[string]int
	near  [][]int // neighbours, in link order
	links [][2]int
}

func newGraph(d *results.Diagram) *graph {
	g := &graph{index: map[string]int{}}
	node := func(name string) int {
		i, ok := g.index[name]
		if !ok {
			i = len(g.names)
			g.index[name] = i
			g.names = append(g.names, name)
			g.near = append(g.near, nil)
		}
		return i
	}
	for _, n := range d.Nodes {
		node(n.Name)
	}
	for _, l := range d.Links {
		a, b := node(l.Between[0]), node(l.Between[1])
		g.links = append(g.links, [2]int{a, b})
		g.near[a] = append(g.near[a], b)
		g.near[b] = append(g.near[b], a)
	}
	return g
}

// walk returns the distance of every node from the start nodes (-1 where
// unreachable), the node it was reached from and the start it belongs to.
func (g *graph) walk(starts ...int) (distance, from, origin []int) {
	n := len(g.names)
	distance, from, origin = make([]int, n), make([]int, n), make([]int, n)
	for i := range distance {
		distance[i], from[i], origin[i] = -1, -1, -1
	}
	queue := slices.Clone(starts)
	for k, s := range starts {
		distance[s], origin[s] = 0, k
	}
	for len(queue) > 0 {
		v := queue[0]
		queue = queue[1:]
		for _, w := range g.near[v] {
			if distance[w] < 0 {
				distance[w], from[w], origin[w] = distance[v]+1, v, origin[v]
				queue = append(queue, w)
			}
		}
	}
	return distance, from, origin
}

// spine returns a longest shortest path of a tree, from the side of the first
// node; nil when the graph is no tree.
func (g *graph) spine() []int {
	n := len(g.names)
	if n == 0 || len(g.links) != n-1 {
		return nil
	}
	distance, _, _ := g.walk(0)
	if slices.Contains(distance, -1) {
		return nil
	}
	far := func(d []int) int { return slices.Index(d, slices.Max(d)) }
	a := far(distance)
	distance, _, _ = g.walk(a)
	b := far(distance)
	if a > b {
		a, b = b, a // the node declared first stands on the left
	}
	_, from, _ := g.walk(a)
	path := []int{b}
	for v := b; from[v] >= 0; v = from[v] {
		path = append(path, from[v])
	}
	slices.Reverse(path)
	return path
}

// place is where a node stands, in grid units.
type place struct{ x, y float64 }

// layout puts trees on their spine and other graphs on a circle; it returns
// places from 0 and how wide they are.
func (g *graph) layout() (places []place, width float64) {
	spine := g.spine()
	switch {
	case spine == nil:
		places = g.onCircle()
	case len(spine) == 3 && len(g.names) > manyLeaves:
		places = g.aroundHub(spine[1])
	case g.bushy(spine):
		places = g.asTree(spine[len(spine)/2])
	default:
		places = g.alongSpine(spine)
	}
	minX, maxX, minY := math.Inf(1), math.Inf(-1), math.Inf(1)
	for _, p := range places {
		minX, maxX, minY = min(minX, p.x), max(maxX, p.x), min(minY, p.y)
	}
	for i := range places {
		places[i].x -= minX
		places[i].y -= minY
	}
	return places, maxX - minX
}

// alongSpine stacks the leaves at both ends of the spine in the end columns,
// and hangs what branches off in between below its spine node.
func (g *graph) alongSpine(spine []int) []place {
	_, _, origin := g.walk(spine...)
	distance, _, _ := g.walk(spine...)
	k := len(spine) - 1
	places := make([]place, len(g.names))
	column := make([][]int, len(spine)) // nodes by column, spine node first
	for i, v := range spine {
		column[i] = []int{v}
	}
	hanging := make([][]int, len(spine))
	star := 0
	for v := range g.names {
		if slices.Contains(spine, v) {
			continue
		}
		o := origin[v]
		switch {
		case k == 2 && o == 1 && distance[v] == 1: // a star: both sides in turn
			side := []int{0, 2}[star%2]
			star++
			column[side] = append(column[side], v)
		case k <= rowLength && o == 1 && distance[v] == 1:
			column[0] = append(column[0], v)
		case k <= rowLength && o == k-1 && distance[v] == 1:
			column[k] = append(column[k], v)
		default:
			hanging[o] = append(hanging[o], v)
		}
	}
	tall := 0
	for _, h := range hanging {
		tall = max(tall, len(h))
	}
	pitch := float64(tall) + 1.4 // between the rows of a long spine
	for i := range spine {
		row := i / rowLength
		x := float64(i % rowLength)
		if len(spine) <= rowLength+1 {
			row, x = 0, float64(i)
		} else if row%2 == 1 {
			x = float64(rowLength-1) - x
		}
		y := float64(row) * pitch
		n := len(column[i])
		slices.Sort(column[i]) // as declared
		for j, v := range column[i] {
			places[v] = place{x, y + float64(j) - float64(n-1)/2}
		}
		for j, v := range hanging[i] {
			offset := 0.0
			if len(hanging[i]) > 1 {
				offset = 0.12
			}
			places[v] = place{x + offset*float64(j%2), y + float64(j+1)}
		}
	}
	return places
}

// manyLeaves is the size from which a star is drawn around its hub.
const manyLeaves = 10

// aroundHub puts the hub of a star in the middle of its leaves.
func (g *graph) aroundHub(hub int) []place {
	places := make([]place, len(g.names))
	n := len(g.names) - 1
	radius := max(1.5, float64(n)*0.085)
	i := 0
	for v := range places {
		if v == hub {
			continue
		}
		angle := 2*math.Pi*float64(i)/float64(n) - math.Pi/2
		places[v] = place{radius * 1.5 * math.Cos(angle), radius * math.Sin(angle)}
		i++
	}
	return places
}

// bushy reports whether too much hangs from the inner nodes of the spine to
// be drawn in columns below them.
func (g *graph) bushy(spine []int) bool {
	distance, _, origin := g.walk(spine...)
	inner := make([]int, len(spine))
	for v, d := range distance {
		o := origin[v]
		if d > 1 {
			return true
		}
		if d == 1 && o > 1 && o < len(spine)-2 {
			inner[o]++
		}
	}
	return slices.Max(inner) > 3
}

// asTree draws a tree from its root on the left, every leaf on a line of its
// own.
func (g *graph) asTree(root int) []place {
	const line = 0.55
	places := make([]place, len(g.names))
	next := 0.0
	var put func(v, parent int, depth float64) float64
	put = func(v, parent int, depth float64) float64 {
		first, last, leaf := 0.0, 0.0, true
		for _, w := range g.near[v] {
			if w == parent {
				continue
			}
			last = put(w, v, depth+1)
			if leaf {
				first, leaf = last, false
			}
		}
		if leaf {
			first, last = next, next
			next += line
		}
		places[v] = place{depth, (first + last) / 2}
		return places[v].y
	}
	put(root, -1, 0)
	return places
}

// onCircle puts the nodes evenly on a circle, the first at the top.
func (g *graph) onCircle() []place {
	n := len(g.names)
	places := make([]place, n)
	radius := max(1.3, float64(n)*0.17)
	for i := range places {
		angle := 2*math.Pi*float64(i)/float64(n) - math.Pi/2
		places[i] = place{radius * 1.5 * math.Cos(angle), radius * math.Sin(angle)}
	}
	return places
}
