package lang

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/dynblock"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"wirelab/experiments"
	"wirelab/results"
)

// judge decodes checks, claims and figures and checks them against what the
// points declare.
func (l *loader) judge() {
	l.sink.point = ""
	l.result.Metrics = l.scope.named()
	ctx := l.steadyContext()
	content, diags := dynblock.Expand(&hclsyntax.Body{Blocks: l.doc.judges, SrcRange: bodyRange(l.doc.judges)}, ctx).Content(&hcl.BodySchema{
		Blocks: []hcl.BlockHeaderSchema{
			{Type: "check", LabelNames: []string{"name"}},
			{Type: "claim", LabelNames: []string{"name"}},
			{Type: "figure", LabelNames: []string{"name"}},
		},
	})
	l.sink.add(diags...)
	if content == nil {
		return
	}
	j := l.newJudges(ctx, content.Blocks)
	seen := map[string]hcl.Range{}
	for _, b := range content.Blocks {
		key := b.Type + " " + b.Labels[0]
		if first, twice := seen[key]; twice {
			l.sink.add(fault(b.DefRange, "Second "+b.Type+" of this name", "There is a %s %q at %s already.", b.Type, b.Labels[0], place(first)))
			continue
		}
		seen[key] = b.DefRange
		switch b.Type {
		case "check":
			l.check(j, b)
		case "claim":
			l.claim(j, b)
		case "figure":
			l.figure(ctx, b)
		}
	}
}

func bodyRange(blocks hclsyntax.Blocks) hcl.Range {
	if len(blocks) == 0 {
		return hcl.Range{}
	}
	return blocks[0].DefRange()
}

// judges evaluates expressions over finished runs. It is what the functions of
// checks and claims share, so its methods may be called from several
// goroutines.
type judges struct {
	steady *hcl.EvalContext // var, host, functions and the steady locals
	loader *loader
	points map[string]point
	static *hcl.EvalContext // of a run whose results are unknown

	mu    sync.Mutex // guards the maps below
	trees map[*results.Run]resultTree
	runs  map[*results.Run]*hcl.EvalContext
}

func (l *loader) newJudges(steady *hcl.EvalContext, blocks hcl.Blocks) *judges {
	j := &judges{steady: steady, loader: l, points: map[string]point{}, trees: map[*results.Run]resultTree{}, runs: map[*results.Run]*hcl.EvalContext{}}
	for _, p := range l.expanded {
		j.points[p.ID] = p
	}
	var refs []ref
	for _, b := range l.doc.judges {
		refs = append(refs, usesOfBlock(b, aggregateNames).refs...)
	}
	l.checkResults(refs)
	unknown := point{values: map[string]cty.Value{}}
	for _, v := range l.sweep {
		unknown.values[v.name] = cty.DynamicVal
		if t := v.values[0].Type(); !slices.ContainsFunc(v.values, func(x cty.Value) bool { return x.Type() != t }) {
			unknown.values[v.name] = cty.UnknownVal(t)
		}
	}
	ctx := l.pointContext(steady, unknown, nil)
	ctx.Variables["result"] = l.scope.unknown(namedLinks(refs))
	j.static = ctx
	return j
}

// context is where a run's expressions are evaluated.
func (j *judges) context(run *results.Run) (*hcl.EvalContext, resultTree) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if ctx := j.runs[run]; ctx != nil {
		return ctx, j.trees[run]
	}
	p, known := j.points[run.Point.ID]
	if !known {
		p = restore(run.Point)
	}
	tree := treeOf(run)
	quiet := *j.loader // locals of a point were checked; their echoes go nowhere
	quiet.sink = newSink()
	ctx := quiet.pointContext(j.steady, p, &runFacts{run.Repetition, run.Seed})
	ctx.Variables["result"] = tree.value()
	j.runs[run], j.trees[run] = ctx, tree
	return ctx, tree
}

// restore makes a point from its record, for runs of an earlier plan.
func restore(p results.Point) point {
	out := point{Point: p, values: map[string]cty.Value{}}
	for _, v := range p.Sweep {
		switch {
		case v.Number != nil:
			out.values[v.Name] = cty.NumberFloatVal(*v.Number)
		case v.Text == "true" || v.Text == "false":
			out.values[v.Name] = cty.BoolVal(v.Text == "true")
		default:
			out.values[v.Name] = cty.StringVal(v.Text)
		}
	}
	return out
}

// runText names a run in messages.
func runText(run *results.Run) string {
	return fmt.Sprintf("run %d (%s, repetition %d)", run.Index, run.Point.ID, run.Repetition)
}

// evaluate returns the value of an expression in a run. The error names the
// run, and the value that it lacks.
func (j *judges) evaluate(e hcl.Expression, refs []ref, run *results.Run, from *hcl.EvalContext) (cty.Value, error) {
	ctx, tree := j.context(run)
	if from != nil {
		child := from.NewChild()
		child.Variables = ctx.Variables
		child.Functions = j.steady.Parent().Functions
		ctx = child
	}
	v, diags := e.Value(ctx)
	if !diags.HasErrors() {
		return v, nil
	}
	if m := tree.missing(refs); m != "" {
		return cty.NilVal, fmt.Errorf("%s has no value of %s", runText(run), m)
	}
	return cty.NilVal, fmt.Errorf("%s: %w", runText(run), plainDiags(diags))
}

// plainDiags is the text of evaluation mistakes at run time.
func plainDiags(diags hcl.Diagnostics) error {
	for _, d := range diags {
		if d.Severity != hcl.DiagError {
			continue
		}
		at := ""
		if d.Subject != nil {
			at = place(*d.Subject) + ": "
		}
		return errors.New(at + strings.TrimSuffix(d.Detail, "."))
	}
	return errors.New("the expression has no value")
}

// check decodes a check block.
func (l *loader) check(j *judges, b *hcl.Block) {
	var x checkBlock
	d := newDecoder(l.files, j.steady)
	d.block(&hcl.Block{Type: b.Type, Body: b.Body, DefRange: b.DefRange}, &x)
	l.sink.add(d.diags...)
	if x.Condition == nil {
		return
	}
	if v := l.value(x.Condition, j.static); !canBe(v, cty.Bool) {
		l.sink.add(fault(x.Condition.Range(), "Wrong type of condition", "It must be true or false, not %s. Compare the value with a bound.", friendly(v.Type())))
	}
	if x.ErrorMessage != nil {
		if v := l.value(x.ErrorMessage, j.static); !canBe(v, cty.String) {
			l.sink.add(fault(x.ErrorMessage.Range(), "Wrong type of error_message", "It must be text."))
		}
	}
	refs, messageRefs := refsOf(x.Condition), refsOf(x.ErrorMessage)
	l.result.Checks = append(l.result.Checks, experiments.Check{Name: b.Labels[0], Eval: func(run *results.Run) (bool, string, error) {
		v, err := j.evaluate(x.Condition, refs, run, nil)
		if err != nil {
			return false, "", err
		}
		ok, err := convert.Convert(v, cty.Bool)
		if err != nil || ok.IsNull() || !ok.IsKnown() {
			return false, "", fmt.Errorf("%s: the condition is neither true nor false", runText(run))
		}
		if ok.True() || x.ErrorMessage == nil {
			return ok.True(), "", nil
		}
		m, err := j.evaluate(x.ErrorMessage, messageRefs, run, nil)
		if err != nil {
			return false, "no message: " + err.Error(), nil
		}
		return false, textOf(m), nil
	}})
}

// canBe reports whether a value, known or not, converts to a type.
func canBe(v cty.Value, t cty.Type) bool {
	if v.Type() == cty.DynamicPseudoType {
		return true
	}
	if !v.IsKnown() {
		v = cty.UnknownVal(v.Type())
	}
	_, err := convert.Convert(v, t)
	return err == nil
}
