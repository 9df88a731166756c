package lang

import (
	"reflect"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"wirelab/experiments"
)

var timingType = reflect.TypeFor[experimentTiming]()

// loader carries one Load through its stages.
type loader struct {
	opts  Options
	files *Files
	sink  *sink
	doc   document

	// base holds the functions, var and host; every other context descends
	// from it.
	base      *hcl.EvalContext
	variables map[string]*variable
	locals    map[string]*local
	order     []*local // locals, each after those it depends on
	// sweepKnown is false when the sweep block is too wrong to check names.
	sweepKnown bool
	sweep      []sweepVariable
	settings   experimentSettings
	smoke      *smokeBlock
	short      bool // smoke of an experiment without a smoke block
	result     *experiments.Experiment
	points     int
	expanded   []point
	emulation  string // of the first point
	memo       map[string]*evaluated
	notes      *notes
	scope      resultScope
}

// Load reads an experiment from files and directories, expands it and
// evaluates every point. The experiment is nil when the diagnostics hold an
// error. The files are never nil: they tell the sources and the size.
func Load(paths []string, opts Options) (*experiments.Experiment, *Files, Diagnostics) {
	l := &loader{opts: opts, sink: newSink(), memo: map[string]*evaluated{}, notes: newNotes()}
	l.opts.Kinds = opts.Kinds.orBuiltIn()
	l.files = readExperiment(opts.FS, paths, l.sink)
	l.scope = newResultScope()
	// A file that does not parse is not evaluated: what is missing from it
	// would be told as mistakes of the rest.
	if !l.sink.hasErrors() {
		l.load()
	}
	diags := l.sink.diagnostics(l.files, l.points)
	if diags.HasErrors() {
		return nil, l.files, diags
	}
	l.result.Source = l.files.Joined()
	l.result.Notes = l.notes.list(l.points)
	return l.result, l.files, diags
}

func (l *loader) load() {
	l.read()
	l.result = &experiments.Experiment{Smoke: l.opts.Smoke}
	l.base = &hcl.EvalContext{
		Functions: functionMap(),
		Variables: map[string]cty.Value{"host": l.opts.Host.value(), "var": cty.EmptyObjectVal},
	}
	l.readLocals()
	l.declareVariables()
	l.nameSweep()
	l.checkReferences()
	if l.doc.experiment == nil {
		return
	}
	l.evaluateVariables()
	l.settle()
	points, ok := l.expand()
	if !ok {
		return
	}
	l.evaluate(points)
	l.judge()
}

// steadyContext is the context outside of points: base and the locals that do
// not depend on a point.
func (l *loader) steadyContext() *hcl.EvalContext {
	ctx := l.base.NewChild()
	ctx.Variables = map[string]cty.Value{"local": l.evaluateLocals(ctx, true)}
	return ctx
}

// value evaluates an expression and keeps what is wrong with it; a value that
// cannot be had is unknown, so that what depends on it stays quiet.
func (l *loader) value(e hcl.Expression, ctx *hcl.EvalContext) cty.Value {
	v, diags := e.Value(ctx)
	l.sink.add(diags...)
	if diags.HasErrors() {
		return cty.DynamicVal
	}
	if v.IsKnown() && !v.IsNull() && v.Type() == cty.Number && v.AsBigFloat().IsInf() {
		l.sink.add(fault(e.Range(), "Not a finite number", "The value is infinite: a number was divided by zero."))
		return cty.DynamicVal
	}
	return v
}

// decode decodes a literal block that the language defines. Blocks of one kind
// may be dynamic only where their context is passed to the expansion.
func (l *loader) decode(b *hclsyntax.Block, ctx *hcl.EvalContext, target any) *decoder {
	d := newDecoder(l.files, ctx)
	d.block(b.AsHCLBlock(), target)
	l.sink.add(d.diags...)
	d.diags = nil
	return d
}

// hostNames are the facts that a file may name.
var hostNames = []string{"arch", "cores", "kernel", "memory_bytes", "nics", "os"}

// useHost keeps the facts that the file refers to; "" are all of them.
func (l *loader) useHost(name string) {
	if l.result.HostFacts == nil {
		l.result.HostFacts = map[string]string{}
	}
	for fact, v := range l.opts.Host.value().AsValueMap() {
		if name == "" || name == fact {
			l.result.HostFacts[fact] = textOf(v)
		}
	}
}

func (h Host) value() cty.Value {
	nics := cty.ListValEmpty(cty.String)
	if len(h.NICs) > 0 {
		var list []cty.Value
		for _, n := range h.NICs {
			list = append(list, cty.StringVal(n))
		}
		nics = cty.ListVal(list)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"arch":         cty.StringVal(h.Arch),
		"cores":        cty.NumberIntVal(int64(h.Cores)),
		"kernel":       cty.StringVal(h.Kernel),
		"memory_bytes": cty.NumberIntVal(h.MemoryBytes),
		"nics":         nics,
		"os":           cty.StringVal(h.OS),
	})
}
