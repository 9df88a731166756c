package lang

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"wirelab/emul"
	"wirelab/results"
	"wirelab/testbed"
	"wirelab/testbed/instrument"
	"wirelab/testbed/topo"
)

// defaultGraphName is the topology's name in result.* where only node and link
// blocks make the graph.
const defaultGraphName = "net"

// graphKind is the kind of the topology block that only names the graph of
// node and link blocks.
const graphKind = "graph"

// graphResult is the graph of one point with where its parts were written.
type graphResult struct {
	topology *testbed.Topology // nil without topology, node and link blocks
	at       hcl.Range         // of the topology block, or the first node
	nodes    map[string]bool
	links    map[string]hcl.Range
	broken   bool // mistakes hide nodes or links
	// defaulted tells per link whether forward and reverse have the default
	// queue; plain are the links of link blocks.
	defaulted map[string][2]bool
	plain     map[string]bool
	values    cty.Value
}

var graphSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "topology", LabelNames: []string{"kind", "name"}},
	{Type: "node", LabelNames: []string{"name"}},
	{Type: "link", LabelNames: []string{"name"}},
}}

// graphLoader builds the graph of one point.
type graphLoader struct {
	*loader
	ctx       *hcl.EvalContext
	emulation string
	out       *graphResult
	t         testbed.Topology
	// decoders tell where the attributes of each link were written.
	decoders map[string]*decoder
	nodes    map[string]*decoder
	nodeAt   map[string]hcl.Range
	top      *hcl.Block
}

// graph evaluates the topology, node and link blocks of a point.
func (l *loader) graph(ctx *hcl.EvalContext, blocks hclsyntax.Blocks, emulation string) *graphResult {
	g := &graphLoader{
		loader: l, ctx: ctx, emulation: emulation,
		out:      &graphResult{nodes: map[string]bool{}, links: map[string]hcl.Range{}, defaulted: map[string][2]bool{}, plain: map[string]bool{}},
		t:        testbed.Topology{Name: defaultGraphName},
		decoders: map[string]*decoder{}, nodes: map[string]*decoder{}, nodeAt: map[string]hcl.Range{},
	}
	list := l.blocks(ctx, blocks, graphSchema)
	if len(list) == 0 {
		return g.out
	}
	g.out.at = list[0].DefRange
	for _, kind := range []string{"topology", "node", "link"} {
		for _, b := range list {
			if b.Type != kind {
				continue
			}
			switch kind {
			case "topology":
				g.topology(b)
			case "node":
				g.node(b)
			case "link":
				g.link(b)
			}
		}
	}
	g.finish()
	return g.out
}

func (g *graphLoader) topology(b *hcl.Block) {
	if g.top != nil {
		g.sink.add(fault(b.DefRange, "Second topology", "An experiment has one topology; %q is at %s already. Node and link blocks add to it.", g.t.Name, place(g.top.DefRange)))
		return
	}
	g.top, g.out.at = b, b.DefRange
	name := b.Labels[1]
	if !identifier.MatchString(name) {
		g.sink.add(badIdentifier(b.LabelRanges[1], name, "topology"))
		return
	}
	g.t.Name = name
	d := newDecoder(g.files, g.ctx)
	if b.Labels[0] == graphKind {
		d.block(b, &graphBlock{})
		g.sink.add(d.diags...)
		return
	}
	i := slices.IndexFunc(g.opts.Kinds.Topologies, func(k topo.Kind) bool { return k.Name == b.Labels[0] })
	if i < 0 {
		known := []string{graphKind}
		for _, k := range g.opts.Kinds.Topologies {
			known = append(known, k.Name)
		}
		g.out.broken = true
		g.sink.add(fault(b.LabelRanges[0], "Unknown topology kind "+b.Labels[0], "%s", remedy(b.Labels[0], "kinds", known)))
		return
	}
	shape := g.opts.Kinds.Topologies[i].New()
	d.block(b, shape)
	if d.diags.HasErrors() {
		g.out.broken = true
	} else {
		built, problems := shape.Build(name)
		d.problems(problems)
		g.out.broken = d.diags.HasErrors()
		g.t.Nodes, g.t.Links = built.Nodes, built.Links
		for _, n := range built.Nodes {
			g.nodeAt[n.Name] = b.DefRange
		}
		for _, k := range built.Links {
			g.decoders[k.Name] = d
			g.out.links[k.Name] = b.DefRange
		}
	}
	g.sink.add(d.diags...)
}

var nodeKinds = []string{string(testbed.KindHost), string(testbed.KindRouter), string(testbed.KindBridge)}

func (g *graphLoader) node(b *hcl.Block) {
	name := b.Labels[0]
	var x nodeBlock
	d := newDecoder(g.files, g.ctx)
	d.block(&hcl.Block{Type: b.Type, Body: b.Body, DefRange: b.DefRange}, &x)
	switch first, twice := g.nodeAt[name]; {
	case !nameOK(name):
		d.diags = append(d.diags, badName(b.LabelRanges[0], name, "node"))
	case twice:
		d.diags = append(d.diags, fault(b.DefRange, "Second node "+name, "There is one at %s already.", place(first)))
	case x.Kind != "" && !slices.Contains(nodeKinds, x.Kind):
		d.diags = append(d.diags, fault(d.where([]string{"kind"}), "Unknown node kind "+x.Kind, "%s", remedy(x.Kind, "kinds", nodeKinds)))
	}
	g.sink.add(d.diags...)
	g.out.broken = g.out.broken || d.diags.HasErrors()
	g.nodeAt[name], g.nodes[name] = b.DefRange, d
	g.t.Nodes = append(g.t.Nodes, testbed.Node{Name: name, Kind: testbed.NodeKind(x.Kind), Sysctls: x.Sysctls})
}

func (g *graphLoader) link(b *hcl.Block) {
	name := b.Labels[0]
	var x linkBlock
	d := newDecoder(g.files, g.ctx)
	d.block(&hcl.Block{Type: b.Type, Body: b.Body, DefRange: b.DefRange}, &x)
	first, twice := g.out.links[name]
	switch {
	case !identifier.MatchString(name):
		d.diags = append(d.diags, badIdentifier(b.LabelRanges[0], name, "link"))
	case twice:
		d.diags = append(d.diags, fault(b.DefRange, "Second link "+name, "There is one at %s already.", place(first)))
	}
	if len(x.Between) != 2 && len(d.diags) == 0 {
		d.diags = append(d.diags, fault(d.where([]string{"between"}), "Bad value of between", "A link joins two nodes: between = [\"a\", \"b\"]; %d given.", len(x.Between)))
	}
	g.out.links[name], g.decoders[name] = b.DefRange, d
	if !d.diags.HasErrors() {
		a, portA, _ := strings.Cut(x.Between[0], ":")
		z, portZ, _ := strings.Cut(x.Between[1], ":")
		k, problems := x.Link(name, a, z)
		k.PortA, k.PortB = portA, portZ
		d.problems(problems)
		g.t.Links = append(g.t.Links, k)
		g.out.plain[name] = true
	}
	g.out.broken = g.out.broken || d.diags.HasErrors()
	g.sink.add(d.diags...)
}

// finish checks the graph as a whole, decides defaults and backends, and
// declares the links' metrics.
func (g *graphLoader) finish() {
	for _, n := range g.t.Nodes {
		g.out.nodes[n.Name] = true
	}
	t := g.t
	g.out.topology = &t
	g.checkGraph()
	if g.out.broken {
		g.scope.openName(t.Name, "topology")
		return
	}
	g.chooseBackends()
	entry := g.scope.name(t.Name, "topology")
	for _, k := range t.Links {
		entry.addLink(k.Name, linkMetrics(k, k.Forward), linkMetrics(k, k.Reverse))
		g.out.defaulted[k.Name] = g.defaultQueue(k.Name)
	}
	g.out.values = cty.NilVal
}

// defaultQueue tells for forward and reverse whether the file gives no queue.
func (g *graphLoader) defaultQueue(link string) [2]bool {
	d := g.decoders[link]
	if d == nil {
		return [2]bool{}
	}
	prefix := ""
	if !g.out.plain[link] {
		// Ready graphs name their links after the block that describes them.
		prefix = "link."
		for _, block := range []string{"bottleneck", "access"} {
			if _, given := d.at[block]; given && strings.HasPrefix(link, block) {
				prefix = block + "."
			}
		}
	}
	_, both := d.at[prefix+"queue"]
	_, forward := d.at[prefix+"forward.queue"]
	_, reverse := d.at[prefix+"reverse.queue"]
	return [2]bool{!both && !forward, !both && !reverse}
}

// checkGraph finds what is wrong with nodes and links together.
func (g *graphLoader) checkGraph() {
	names := sortedKeys(g.out.nodes)
	for _, k := range g.t.Links {
		for _, end := range []string{k.A, k.B} {
			if !g.out.nodes[end] {
				g.out.broken = true
				g.sink.add(fault(g.placeOf([]string{"link", k.Name, "between"}), "Unknown node "+end, "%s", remedy(end, "nodes", names)))
			}
		}
	}
	if g.out.broken {
		return
	}
	for _, p := range g.t.Validate() {
		x := problem(p, g.placeOf(p.Path))
		g.sink.add(x)
		g.out.broken = g.out.broken || x.Severity == hcl.DiagError
	}
}

// placeOf finds where ["node" or "link", NAME, attribute] was written.
func (g *graphLoader) placeOf(path []string) hcl.Range {
	if len(path) < 2 {
		return g.out.at
	}
	decoders := g.nodes
	if path[0] == "link" {
		decoders = g.decoders
	}
	if d := decoders[path[1]]; d != nil {
		return d.where(path[2:])
	}
	return g.out.at
}

// linkMetrics are the metrics that a direction of a link will have.
func linkMetrics(k testbed.Link, i emul.Impairment) []results.MetricDef {
	if k.Backend == testbed.BackendNone {
		return instrument.BareLinkMetrics()
	}
	return instrument.LinkMetrics(i.Rate > 0)
}

// names are the names of the result scope that the graph takes.
func (g *graphResult) names() map[string]hcl.Range {
	m := map[string]hcl.Range{}
	if g.topology != nil {
		m[g.topology.Name] = g.at
	}
	return m
}

func (g *graphResult) has(node string) bool {
	return g.topology != nil && g.nodes[node]
}

// implied is the node of workloads that need no network.
const implied = "host"

// checkNode checks that a workload's or instrument's node exists.
func (g *graphResult) checkNode(name string, at hcl.Range) hcl.Diagnostics {
	if g.nodes[name] || g.broken || g.topology == nil && name == implied {
		return nil
	}
	if g.topology == nil {
		return hcl.Diagnostics{fault(at, "Unknown node "+name, "The file has no topology, node or link block; the only node is then \"host\", the machine itself.")}
	}
	return hcl.Diagnostics{fault(at, "Unknown node "+name, "%s", remedy(name, "nodes", sortedKeys(g.nodes)))}
}

// checkLink checks a link's name, with or without the topology's in front.
func (g *graphResult) checkLink(name string, at hcl.Range) hcl.Diagnostics {
	if g.broken {
		return nil
	}
	if g.topology == nil {
		return hcl.Diagnostics{fault(at, "Unknown link "+name, "The file has no topology, node or link block.")}
	}
	var known []string
	for _, k := range g.topology.Links {
		known = append(known, g.topology.Name+"."+k.Name)
	}
	if slices.Contains(known, name) || slices.Contains(known, g.topology.Name+"."+name) {
		return nil
	}
	return hcl.Diagnostics{fault(at, "Unknown link "+name, "%s", remedy(name, "links", known))}
}

// context adds node.NAME.ipv4 and ipv6, the first addresses of each node, for
// workloads and instruments.
func (g *graphResult) context(ctx *hcl.EvalContext) *hcl.EvalContext {
	child := ctx.NewChild()
	child.Variables = map[string]cty.Value{"node": g.addresses()}
	return child
}

func (g *graphResult) addresses() cty.Value {
	if g.topology == nil {
		return cty.EmptyObjectVal
	}
	if g.values != cty.NilVal {
		return g.values
	}
	if g.broken {
		return cty.DynamicVal
	}
	g.values = cty.DynamicVal
	all, err := g.topology.Addresses()
	if err != nil {
		return g.values
	}
	nodes := make(map[string]cty.Value, len(g.topology.Nodes))
	for _, n := range g.topology.Nodes {
		v4, v6 := cty.NullVal(cty.String), cty.NullVal(cty.String)
		if a := all[n.Name]; len(a) > 0 {
			v4 = cty.StringVal(a[0].IPv4.Addr().String())
			if a[0].IPv6.IsValid() {
				v6 = cty.StringVal(a[0].IPv6.Addr().String())
			}
		}
		nodes[n.Name] = cty.ObjectVal(map[string]cty.Value{"ipv4": v4, "ipv6": v6, "kind": cty.StringVal(string(n.Kind))})
	}
	g.values = cty.ObjectVal(nodes)
	return g.values
}

// checkRefs tells unknown nodes in node.NAME.
func (g *graphResult) checkRefs(l *loader, refs []ref) {
	if g.broken {
		return
	}
	for _, r := range refs {
		if r.root == "node" && r.first() != "" && !g.nodes[r.first()] {
			l.report(fault(r.stepRange(0), "Unknown reference node."+r.first(), "%s", remedy(r.first(), "nodes", sortedKeys(g.nodes))))
		}
	}
}
