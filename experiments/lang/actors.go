package lang

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"wirelab/emul/attr"
	"wirelab/experiments"
	"wirelab/results"
	"wirelab/testbed/instrument"
	"wirelab/workloads"
)

// actorLoader decodes the workloads and instruments of one point.
type actorLoader struct {
	*loader
	graph  *graphResult
	timing experimentTiming
	names  map[string]hcl.Range // of the result scope, with where each is defined
	out    *actors
	placed map[string]*decoder // of workloads, for ranges
	failed bool                // some block could not be decoded
}

func (a *actorLoader) block(ctx *hcl.EvalContext, b *hcl.Block) {
	kind, name := b.Labels[0], b.Labels[1]
	if !identifier.MatchString(name) {
		a.sink.add(badIdentifier(b.LabelRanges[1], name, b.Type))
		return
	}
	if first, taken := a.names[name]; taken {
		a.sink.add(fault(b.LabelRanges[1], "Name taken: "+name, "Topologies, workloads and instruments share the names of result.*; %q is at %s already.", name, place(first)))
		return
	}
	a.names[name] = b.DefRange
	if b.Type == "workload" {
		a.workload(ctx, b, kind, name)
	} else {
		a.instrument(ctx, b, kind, name)
	}
}

func (a *actorLoader) unknownKind(b *hcl.Block, kinds []string) {
	a.failed = true
	a.scope.openName(b.Labels[1], b.Labels[0])
	a.sink.add(fault(b.LabelRanges[0], "Unknown "+b.Type+" kind "+b.Labels[0], "%s", remedy(b.Labels[0], "kinds", kinds)))
}

// locator is a block that names files: relative ones lie beside the
// experiment's file.
type locator interface{ Locate(dir string) }

// directory is where a file lies, absolute so that it stays right in other
// processes.
func directory(file string) string {
	dir := filepath.Dir(file)
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// decodeKind decodes a block with kind and name into target and validates it.
func (a *actorLoader) decodeKind(ctx *hcl.EvalContext, b *hcl.Block, target any, validate func() []attr.Problem) (*decoder, bool) {
	d := newDecoder(a.files, ctx)
	d.block(b, target)
	// The text is taken before the block learns where its file lies: an
	// experiment is the same wherever it is kept.
	text, err := json.Marshal(target)
	if err != nil {
		d.diags = append(d.diags, fault(b.DefRange, "Cannot plan "+b.Labels[1], "A value has no text: %v.", err))
	}
	t := namedText{Name: b.Labels[1], Kind: b.Labels[0], Config: text}
	if b.Type == "workload" {
		a.out.text.Workloads = append(a.out.text.Workloads, t)
	} else {
		a.out.text.Instruments = append(a.out.text.Instruments, t)
	}
	if x, ok := target.(locator); ok && a.opts.FS == nil {
		x.Locate(directory(b.DefRange.Filename))
	}
	if !d.diags.HasErrors() {
		d.problems(validate())
	}
	ok := !d.diags.HasErrors()
	if !ok {
		a.failed = true
		a.scope.openName(b.Labels[1], b.Labels[0])
	}
	return d, ok
}

func (a *actorLoader) workload(ctx *hcl.EvalContext, b *hcl.Block, kind, name string) {
	i := slices.IndexFunc(a.opts.Kinds.Workloads, func(k workloads.Kind) bool { return k.Name == kind })
	if i < 0 {
		var known []string
		for _, k := range a.opts.Kinds.Workloads {
			known = append(known, k.Name)
		}
		a.unknownKind(b, known)
		return
	}
	w := a.opts.Kinds.Workloads[i].New()
	d, ok := a.decodeKind(ctx, b, w, w.Validate)
	a.placed[name] = d
	a.checkPlacement(d, w)
	a.sink.add(d.diags...)
	if ok {
		a.declare(name, kind, w.Metrics())
	}
	a.out.workloads = append(a.out.workloads, experiments.NamedWorkload{Name: name, Kind: kind, Config: w})
}

func (a *actorLoader) declare(name, kind string, metrics []results.MetricDef) {
	a.scope.name(name, kind).add(metrics)
}

func (a *actorLoader) instrument(ctx *hcl.EvalContext, b *hcl.Block, kind, name string) {
	i := slices.IndexFunc(a.opts.Kinds.Instruments, func(k instrument.Kind) bool { return k.Name == kind })
	if i < 0 {
		var known []string
		for _, k := range a.opts.Kinds.Instruments {
			known = append(known, k.Name)
		}
		a.unknownKind(b, known)
		return
	}
	x := a.opts.Kinds.Instruments[i].New()
	d, ok := a.decodeKind(ctx, b, x, x.Validate)
	if ok {
		a.checkNeeds(d, x)
		a.declare(name, kind, x.Metrics())
	}
	a.sink.add(d.diags...)
	a.out.instruments = append(a.out.instruments, experiments.NamedInstrument{Name: name, Kind: kind, Config: x})
}

// defaults adds the instruments that run unless a block of their kind says
// otherwise.
func (a *actorLoader) defaults() {
	for _, def := range a.opts.Kinds.Defaults {
		named := slices.ContainsFunc(a.out.instruments, func(i experiments.NamedInstrument) bool { return i.Kind == def.Kind })
		i := slices.IndexFunc(a.opts.Kinds.Instruments, func(k instrument.Kind) bool { return k.Name == def.Kind })
		if named || i < 0 {
			continue
		}
		name := def.Name
		if _, taken := a.names[name]; taken {
			name += "_default"
		}
		a.names[name] = hcl.Range{}
		x := a.opts.Kinds.Instruments[i].New()
		a.declare(name, def.Kind, x.Metrics())
		text, err := json.Marshal(x)
		if err != nil {
			panic("lang: instrument " + def.Kind + " has no text: " + err.Error()) // a mistake of this program
		}
		a.out.text.Instruments = append(a.out.text.Instruments, namedText{name, def.Kind, text})
		a.out.instruments = append(a.out.instruments, experiments.NamedInstrument{Name: name, Kind: def.Kind, Config: x})
	}
}

// checkPlacement checks the nodes and times of a workload.
func (a *actorLoader) checkPlacement(d *decoder, w workloads.Workload) {
	p := w.Common()
	for _, x := range []struct{ attribute, node string }{{"from", p.From}, {"to", p.To}, {"on", p.On}} {
		if x.node != "" {
			d.diags = append(d.diags, a.graph.checkNode(x.node, d.where([]string{x.attribute}))...)
		}
	}
	load := a.timing.Warmup + a.timing.Duration
	if p.Stop != 0 && p.Stop <= p.Start {
		d.diags = append(d.diags, fault(d.where([]string{"stop"}), "Stop before start", "The workload starts at %s and stops at %s; both count from the beginning of the load.", p.Start, p.Stop))
	} else if a.timing.Duration > 0 && p.Start >= load {
		d.diags = append(d.diags, fault(d.where([]string{"start"}), "Start after the end", "The load ends after %s (warm-up and duration): the workload would never run.", load))
	}
	if p.After != "" && p.Start != 0 {
		d.diags = append(d.diags, fault(d.where([]string{"start"}), "Two starts", "after starts the workload when another one ends; leave start out."))
	}
	for _, c := range p.Cores {
		if c < 0 || a.opts.Host.Cores > 0 && c >= a.opts.Host.Cores {
			d.diags = append(d.diags, fault(d.where([]string{"cores"}), "No such core", "Cores are counted from 0%s, not %d.", lastCore(a.opts.Host.Cores), c))
		}
	}
}

// lastCore tells the number of the last core, where it is known.
func lastCore(cores int) string {
	if cores == 0 {
		return ""
	}
	return fmt.Sprintf(" and this host's last one is %d", cores-1)
}

// checkNeeds checks the nodes and links that an instrument attaches to.
func (a *actorLoader) checkNeeds(d *decoder, x instrument.Instrument) {
	nodes, links := x.Needs()
	for _, n := range nodes {
		d.diags = append(d.diags, a.graph.checkNode(n, d.whereOf("node", "nodes", "on"))...)
	}
	for _, name := range links {
		d.diags = append(d.diags, a.graph.checkLink(name, d.whereOf("link", "links", "on"))...)
	}
}

// whereOf is the range of the first of the attributes that was written.
func (d *decoder) whereOf(names ...string) hcl.Range {
	for _, n := range names {
		if r, ok := d.at[n]; ok {
			return r
		}
	}
	return d.at[""]
}

// checkOrder checks that "after" names workloads, without a cycle.
func (a *actorLoader) checkOrder() {
	after := map[string]string{}
	var names []string
	for _, w := range a.out.workloads {
		names = append(names, w.Name)
		if x := w.Config.Common().After; x != "" {
			after[w.Name] = x
		}
	}
	for _, name := range names {
		target, waits := after[name]
		if !waits {
			continue
		}
		at := a.placed[name].where([]string{"after"})
		if !slices.Contains(names, target) {
			a.sink.add(fault(at, "Unknown workload "+target, "%s", remedy(target, "workloads", names)))
			continue
		}
		for seen, next := 0, target; ; seen++ {
			if next == name || seen > len(names) {
				a.sink.add(fault(at, "Workloads wait for each other", "%q starts after %q, which starts after it: neither would begin.", name, target))
				break
			}
			if next, waits = after[next]; !waits {
				break
			}
		}
	}
}
