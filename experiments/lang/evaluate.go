package lang

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"wirelab/experiments"
	"wirelab/testbed"
)

// runFacts are run.* of one repetition.
type runFacts struct {
	repetition int
	seed       uint64
}

// seedOf is run.seed of a repetition, the same in every point: the r-th output
// of the generator SplitMix64 started at the experiment's seed, cut to 53 bits
// so that it stays exact in JSON.
func seedOf(seed uint64, repetition int) uint64 {
	z := seed + (uint64(repetition)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (z ^ z>>31) >> 11
}

// pointContext is where the expressions of a point are evaluated. A nil run
// leaves run.* unknown.
func (l *loader) pointContext(steady *hcl.EvalContext, p point, run *runFacts) *hcl.EvalContext {
	ctx := steady.NewChild()
	facts := cty.ObjectVal(map[string]cty.Value{"seed": cty.UnknownVal(cty.Number), "repetition": cty.UnknownVal(cty.Number)})
	if run != nil {
		facts = cty.ObjectVal(map[string]cty.Value{
			"seed": cty.NumberUIntVal(run.seed), "repetition": cty.NumberIntVal(int64(run.repetition)),
		})
	}
	ctx.Variables = map[string]cty.Value{"sweep": cty.ObjectVal(p.values), "run": facts}
	ctx.Variables["local"] = l.evaluateLocals(ctx, false)
	return ctx
}

// evaluated is the outcome of a group of blocks, kept for every point that
// gives their expressions the same values.
type evaluated struct {
	graph *graphResult
	actors
	diags hcl.Diagnostics
}

// actors are what runs on a graph.
type actors struct {
	topology    *testbed.Topology // of the graph, with the queues that follow from workloads
	text        setupText         // the blocks' part of it
	workloads   []experiments.NamedWorkload
	instruments []experiments.NamedInstrument
}

// groups are the blocks of a point, in the order they are evaluated.
type groups struct {
	graph, actors         hclsyntax.Blocks
	refs                  []ref // of actors
	graphDeps, actorsDeps dependencies
	timingDeps            dependencies
}

func (l *loader) groupBlocks() groups {
	var g groups
	for _, b := range l.doc.setup {
		u := usesOfBlock(b, nil)
		deps := l.dependenciesOf(u)
		switch blockName(b) {
		case "topology", "node", "link":
			g.graph = append(g.graph, b)
			g.graphDeps.merge(deps)
		default:
			g.actors = append(g.actors, b)
			g.refs = append(g.refs, u.refs...)
			g.actorsDeps.merge(deps)
		}
	}
	for _, a := range l.doc.experiment.Body.Attributes {
		g.timingDeps.merge(l.dependenciesOf(usesOf(a.Expr, nil)))
	}
	// The emulation of the experiment is the default of every link, and actors
	// are checked against the graph.
	g.graphDeps.merge(g.timingDeps)
	g.actorsDeps.merge(g.graphDeps)
	return g
}

// evaluate makes the setups of all points.
func (l *loader) evaluate(points []point) {
	l.points, l.expanded = len(points), points
	g := l.groupBlocks()
	steady := l.steadyContext()
	for _, p := range points {
		l.sink.point = p.ID
		l.notes.point = p.ID
		out := experiments.Point{Point: p.Point}
		distinct := 1
		if g.actorsDeps.run {
			distinct = l.settings.Repetitions
		}
		for r := range l.settings.Repetitions {
			facts := runFacts{r, seedOf(l.settings.Seed, r)}
			if r < distinct {
				out.Repetitions = append(out.Repetitions, l.setup(&g, steady, p, facts))
				continue
			}
			s := out.Repetitions[0]
			s.Repetition, s.Seed = r, facts.seed
			out.Repetitions = append(out.Repetitions, s)
		}
		l.result.Points = append(l.result.Points, out)
	}
	l.sink.point, l.notes.point = "", ""
	if len(l.result.Points) > 0 {
		first := l.result.Points[0].Repetitions[0]
		l.result.Duration, l.result.Warmup, l.result.Emulation = first.Duration, first.Warmup, l.emulation
	}
}

// setup evaluates one run.
func (l *loader) setup(g *groups, steady *hcl.EvalContext, p point, run runFacts) experiments.Setup {
	ctx := l.pointContext(steady, p, &run)
	t := l.timing(ctx)
	if l.emulation == "" {
		l.emulation = t.Emulation
	}
	s := experiments.Setup{Repetition: run.repetition, Seed: run.seed, Duration: t.Duration, Warmup: t.Warmup}
	net := l.once("graph", g.graphDeps, p, run, func(e *evaluated) {
		e.graph = l.graph(ctx, g.graph, t.Emulation)
	})
	acting := l.once("actors", g.actorsDeps, p, run, func(e *evaluated) {
		net.graph.checkRefs(l, g.refs)
		e.actors = l.actors(net.graph.context(ctx), g.actors, net.graph, t)
	})
	s.Topology = acting.topology
	s.Workloads, s.Instruments = acting.workloads, acting.instruments
	s.Text = l.text(s, acting.text)
	return s
}

// once evaluates a group of blocks, or takes what it was for another point
// with the same values. What was wrong is told again, for this point.
func (l *loader) once(group string, deps dependencies, p point, run runFacts, fn func(*evaluated)) *evaluated {
	key := group + "\x00" + deps.key(p, run)
	if e := l.memo[key]; e != nil {
		l.sink.add(e.diags...)
		return e
	}
	e := &evaluated{}
	outer := l.sink.record
	l.sink.record = &e.diags
	fn(e)
	l.sink.record = outer
	l.memo[key] = e
	return e
}

// key is the values that something depends on.
func (d *dependencies) key(p point, run runFacts) string {
	var b strings.Builder
	for _, v := range p.Sweep {
		for _, name := range d.sweep {
			if d.all || name == v.Name {
				fmt.Fprintf(&b, "%q=%q,", v.Name, v.Text)
				break
			}
		}
		if d.all && len(d.sweep) == 0 {
			fmt.Fprintf(&b, "%q=%q,", v.Name, v.Text)
		}
	}
	if d.run {
		b.WriteString(strconv.Itoa(run.repetition))
	}
	return b.String()
}

// blocks expands and lists the blocks of a group.
func (l *loader) blocks(ctx *hcl.EvalContext, blocks hclsyntax.Blocks, schema *hcl.BodySchema) hcl.Blocks {
	body := &hclsyntax.Body{Blocks: blocks, SrcRange: bodyRange(blocks), EndRange: bodyRange(blocks)}
	content, diags := dynblock.Expand(body, ctx).Content(schema)
	l.sink.add(diags...)
	if content == nil {
		return nil
	}
	return content.Blocks
}

var actorSchema = &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{
	{Type: "workload", LabelNames: []string{"kind", "name"}},
	{Type: "instrument", LabelNames: []string{"kind", "name"}},
}}

// actors decodes workload and instrument blocks and checks them against the
// graph.
func (l *loader) actors(ctx *hcl.EvalContext, blocks hclsyntax.Blocks, g *graphResult, t experimentTiming) actors {
	var out actors
	a := &actorLoader{loader: l, graph: g, timing: t, names: g.names(), out: &out, placed: map[string]*decoder{}}
	for _, b := range l.blocks(ctx, blocks, actorSchema) {
		a.block(ctx, b)
	}
	a.defaults()
	a.checkOrder()
	ways := a.ways()
	out.topology = a.sizeQueues(ways)
	a.lintQueues(out.topology, ways)
	return out
}

// setupText is the canonical form of a setup: equal text, equal run.
type setupText struct {
	Substrate   string            `json:"substrate"`
	Duration    string            `json:"duration"`
	Warmup      string            `json:"warmup"`
	Topology    *testbed.Topology `json:"topology,omitempty"`
	Workloads   []namedText       `json:"workloads"`
	Instruments []namedText       `json:"instruments"`
}

type namedText struct {
	Name   string          `json:"name"`
	Kind   string          `json:"kind"`
	Config json.RawMessage `json:"config"`
}

func (l *loader) text(s experiments.Setup, blocks setupText) []byte {
	t := blocks
	t.Substrate, t.Duration, t.Warmup, t.Topology = l.settings.Substrate, s.Duration.String(), s.Warmup.String(), s.Topology
	text, err := json.Marshal(t)
	if err != nil {
		l.sink.add(globalFault("Cannot write the plan", "A value has no text: %v.", err))
	}
	return text
}

func jsonText(x any) string {
	b, err := json.Marshal(x)
	if err != nil {
		return fmt.Sprint(x)
	}
	return string(b)
}
