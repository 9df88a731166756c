package testbed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirelab/emul/attr"
)

// Validate finds what is wrong with a topology before anything is built. The
// path of a problem is ["node", NAME, attribute] or ["link", NAME, attribute].
// Warnings do not keep it from being built.
func (t Topology) Validate() []attr.Problem {
	v := &validator{Topology: t}
	v.checkNodes()
	v.checkLinks()
	if len(v.problems) > 0 {
		return v.problems // the graph cannot be walked
	}
	g, err := newGraph(t)
	if err == nil {
		err = g.checkSpace()
	}
	if err != nil {
		return append(v.problems, attr.At("", "Bad topology", "%v", err))
	}
	v.checkSysctls()
	v.checkPorts(g)
	v.checkLoops(g)
	v.checkConnected(g)
	v.checkForwarding(g)
	v.checkDepth(g)
	return v.problems
}

// validator collects what is wrong.
type validator struct {
	Topology
	problems []attr.Problem
}

func (v *validator) add(path []string, summary, format string, args ...any) {
	v.problems = append(v.problems, attr.Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(format, args...)})
}

// warning makes the last problem one.
func (v *validator) warning() { v.problems[len(v.problems)-1].Warning = true }

func (v *validator) node(name, attribute, summary, format string, args ...any) {
	v.add([]string{"node", name, attribute}, summary, format, args...)
}

func (v *validator) link(name, attribute, summary, format string, args ...any) {
	v.add([]string{"link", name, attribute}, summary, format, args...)
}

const nameRule = "A name has 1 to 63 letters, digits, - and _, and begins with a letter or digit."

func (v *validator) checkNodes() {
	if len(v.Nodes) == 0 {
		v.add(nil, "No nodes", "A topology needs at least one node.")
	}
	seen := map[string]bool{}
	for _, n := range v.Nodes {
		switch {
		case !nodeName.MatchString(n.Name):
			v.node(n.Name, "name", fmt.Sprintf("Bad node name %q", n.Name), nameRule)
		case seen[n.Name]:
			v.node(n.Name, "name", fmt.Sprintf("Two nodes are called %q", n.Name), "Every node needs a name of its own.")
		}
		seen[n.Name] = true
		switch n.Kind {
		case KindHost, KindRouter, KindBridge:
		default:
			v.node(n.Name, "kind", fmt.Sprintf("Unknown kind %q of node %s", n.Kind, n.Name), "Known are %q, %q and %q.", KindHost, KindRouter, KindBridge)
		}
	}
}

func (v *validator) checkLinks() {
	nodes := map[string]bool{}
	for _, n := range v.Nodes {
		nodes[n.Name] = true
	}
	seen := map[string]bool{}
	for _, l := range v.Links {
		switch {
		case !nodeName.MatchString(l.Name):
			v.link(l.Name, "name", fmt.Sprintf("Bad link name %q", l.Name), nameRule)
		case seen[l.Name]:
			v.link(l.Name, "name", fmt.Sprintf("Two links are called %q", l.Name), "Every link needs a name of its own.")
		}
		seen[l.Name] = true
		for _, end := range []string{l.A, l.B} {
			if !nodes[end] {
				v.link(l.Name, "between", fmt.Sprintf("Unknown node %q", end), "%s", v.knownNodes(end))
			}
		}
		if l.A == l.B {
			v.link(l.Name, "between", fmt.Sprintf("Link %s joins %s with itself", l.Name, l.A), "Name two different nodes.")
		}
		if l.MTU != 0 && (l.MTU < MinMTU || l.MTU > MaxMTU) {
			v.link(l.Name, "mtu", "Bad MTU", "It must be between %d and %d bytes, not %d.", MinMTU, MaxMTU, l.MTU)
		}
	}
}

// knownNodes suggests the node that was meant.
func (v *validator) knownNodes(not string) string {
	var names []string
	for _, n := range v.Nodes {
		if strings.EqualFold(n.Name, not) {
			return fmt.Sprintf("Did you mean %q?", n.Name)
		}
		names = append(names, n.Name)
	}
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("There are %d nodes: %s, …", len(names), strings.Join(names[:most], ", "))
	}
	return "The nodes are " + strings.Join(names, ", ") + "."
}

// checkSysctls keeps nodes from changing the host: only what is below net
// belongs to a namespace.
func (v *validator) checkSysctls() {
	for _, n := range v.Nodes {
		for _, key := range slices.Sorted(maps.Keys(n.Sysctls)) {
			if !strings.HasPrefix(key, "net.") || strings.Contains(key, "..") || strings.Contains(key, "/") || strings.HasSuffix(key, ".") {
				v.node(n.Name, "sysctls", fmt.Sprintf("Bad sysctl %q of node %s", key, n.Name),
					"Only keys that begin with \"net.\", written with dots, belong to a node; others would change the host.")
			}
		}
	}
}

func (v *validator) checkPorts(g *graph) {
	for n, ends := range g.links {
		taken := map[string]string{}
		for _, e := range ends {
			p, l := g.port(e), g.Links[e.link]
			if p == "" {
				continue
			}
			switch other, twice := taken[p]; {
			case twice:
				v.link(l.Name, "between", fmt.Sprintf("Two links on one port: %s of %s", p, g.Nodes[n].Name),
					"It is taken by link %s; a port has one link. To join more than two nodes, use a node of kind \"bridge\".", other)
			case !portName.MatchString(p) || slices.Contains(reserved, p) || g.isBridge(n) && p == bridgeDevice:
				v.link(l.Name, "between", fmt.Sprintf("Bad port name %q", p),
					"A port is a device: 1 to %d letters, digits, -, _ and dots, and no word that ip(8) knows.", maxDeviceName)
			}
			taken[p] = l.Name
		}
	}
}

// checkLoops refuses loops of bridges: without a spanning tree one broadcast
// would circle for ever.
func (v *validator) checkLoops(g *graph) {
	parent := make([]int, len(g.Nodes))
	for i := range parent {
		parent[i] = i
	}
	find := func(n int) int {
		for parent[n] != n {
			parent[n] = parent[parent[n]]
			n = parent[n]
		}
		return n
	}
	for i, l := range g.Links {
		a, b := g.ends[i][0], g.ends[i][1]
		if !g.isBridge(a) || !g.isBridge(b) {
			continue
		}
		if find(a) == find(b) {
			v.link(l.Name, "between", "A loop of bridges",
				"%s and %s are joined by other bridges already, and bridges here run no spanning tree: frames would circle for ever. Leave the link out, or make one of the nodes a router.", l.A, l.B)
			continue
		}
		parent[find(a)] = find(b)
	}
}

// checkConnected wants one network: a node without a way to the others is a
// mistake in the file.
func (v *validator) checkConnected(g *graph) {
	part := make([]int, len(g.Nodes)) // number of the part, from 1
	var parts [][]string
	for root := range g.Nodes {
		if part[root] != 0 {
			continue
		}
		parts = append(parts, nil)
		number := len(parts)
		part[root] = number
		for stack := []int{root}; len(stack) > 0; {
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			parts[number-1] = append(parts[number-1], g.Nodes[n].Name)
			for _, e := range g.links[n] {
				if p := g.peerOf(e); part[p] == 0 {
					part[p] = number
					stack = append(stack, p)
				}
			}
		}
	}
	if len(parts) < 2 {
		return
	}
	// The largest part is the network, the others are cut off from it.
	main := slices.MaxFunc(parts, func(a, b []string) int { return len(a) - len(b) })
	for _, p := range parts {
		switch {
		case &p[0] == &main[0]:
		case len(p) == 1:
			v.node(p[0], "name", fmt.Sprintf("Node %s has no link", p[0]), "There is no route from it to any other node: add a link, or remove the node.")
		default:
			v.node(p[0], "name", "The network is in separate parts", "There is no route from %s to %s: join them by a link.", someOf(p), someOf(main))
		}
	}
}

func someOf(names []string) string {
	if len(names) > 4 {
		return strings.Join(names[:4], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// checkForwarding warns of hosts in the middle of the only way between other
// nodes: they do not forward.
func (v *validator) checkForwarding(g *graph) {
	r := newReach(g)
	for n, node := range g.Nodes {
		if node.Kind != KindHost || len(g.links[n]) < 2 {
			continue
		}
		first := g.peerOf(g.links[n][0])
		for _, e := range g.links[n][1:] {
			other := g.peerOf(e)
			if g.isBridge(first) || g.isBridge(other) || first == other {
				continue
			}
			r.from(first)
			if r.visited[other] != first+1 {
				v.node(node.Name, "kind", fmt.Sprintf("Host %s does not forward", node.Name),
					"There is no other way between %s and %s. If they are to reach each other, write kind = \"router\".",
					g.Nodes[first].Name, g.Nodes[other].Name)
				v.warning()
				break
			}
		}
	}
}

// checkDepth warns of nodes that no IP packet can travel between. Of a tree it
// finds the longest way; of other graphs a long one.
func (v *validator) checkDepth(g *graph) {
	if !g.isDeep() {
		return
	}
	from, _ := g.farthest(0)
	to, hops := g.farthest(from)
	if routers := hops - 1; routers >= maxHops {
		v.node(g.Nodes[to].Name, "name", "Too many routers in a row",
			"Between %s and %s there are %d routers, and an IP packet survives %d: most of them cannot reach each other. Bridges (kind = \"bridge\") have no such limit.",
			g.Nodes[from].Name, g.Nodes[to].Name, routers, maxHops-1)
		v.warning()
	}
}

// farthest is a node with the most links between it and from, without regard
// to kinds other than bridges, which cost nothing.
func (g *graph) farthest(from int) (node, hops int) {
	distance := make([]int, len(g.Nodes))
	for i := range distance {
		distance[i] = -1
	}
	distance[from] = 0
	node = from
	for queue := []int{from}; len(queue) > 0; queue = queue[1:] {
		n := queue[0]
		if distance[n] > distance[node] {
			node = n
		}
		for _, e := range g.links[n] {
			for _, m := range g.segments[g.segment[e.link]].members {
				if p := g.nodeAt(m); distance[p] < 0 {
					distance[p] = distance[n] + 1
					queue = append(queue, p)
				}
			}
		}
	}
	return node, distance[node]
}
