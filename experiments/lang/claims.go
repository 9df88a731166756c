package lang

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/customdecode"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"wirelab/results"
	"wirelab/results/claim"
)

// aggregate reduces an expression over the valid runs of an experiment.
type aggregate struct {
	name, call, doc string
	// parameters between the expression and the condition: 1 for quantile.
	parameters int
	reduce     func(values []float64, parameter float64) (float64, error)
}

var aggregates = []aggregate{
	{"median", "median(expr, condition)", "Median over the runs.", 0, func(v []float64, _ float64) (float64, error) { return median(v) }},
	{"mean", "mean(expr, condition)", "Arithmetic mean over the runs.", 0, func(v []float64, _ float64) (float64, error) { return mean(v) }},
	{"min", "min(expr, condition)", "Smallest over the runs.", 0, func(v []float64, _ float64) (float64, error) { return minimum(v) }},
	{"max", "max(expr, condition)", "Largest over the runs.", 0, func(v []float64, _ float64) (float64, error) { return maximum(v) }},
	{"quantile", "quantile(expr, q, condition)", "Value below which the share q of the runs lies.", 1, quantile},
	{"count", "count(expr, condition)", "Number of runs; where the expression is true or false, of those where it is true.", 0, func(v []float64, _ float64) (float64, error) { return sum(v) }},
}

// aggregateNames are functions whose arguments are evaluated in each run.
var aggregateNames = func() map[string]bool {
	m := map[string]bool{}
	for _, a := range aggregates {
		m[a.name] = true
	}
	return m
}()

// judgement evaluates one claim over runs, or statically without.
type judgement struct {
	*judges
	cache map[cacheKey]perRun
	runs  []*results.Run
	used  map[*results.Run]bool // where the conditions were true
	err   error
	diags hcl.Diagnostics
	check bool // static: closures see unknown results
}

type cacheKey struct {
	expr hcl.Expression
	run  *results.Run
}

// perRun is the outcome of an aggregate's argument in one run: numbers of an
// expression, truth of a condition.
type perRun struct {
	numbers []float64
	truth   bool
	err     error
}

// functions are the aggregates bound to the judgement.
func (j *judgement) functions() map[string]function.Function {
	m := make(map[string]function.Function, len(aggregates))
	for _, a := range aggregates {
		params := []function.Parameter{{Name: "expr", Type: customdecode.ExpressionClosureType}}
		if a.parameters > 0 {
			params = append(params, function.Parameter{Name: "q", Type: cty.Number})
		}
		m[a.name] = function.New(&function.Spec{
			Params:   params,
			VarParam: &function.Parameter{Name: "condition", Type: customdecode.ExpressionClosureType},
			Type:     function.StaticReturnType(cty.Number),
			Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
				return j.apply(a, args)
			},
		})
	}
	return m
}

func (j *judgement) apply(a aggregate, args []cty.Value) (cty.Value, error) {
	expr := customdecode.ExpressionClosureFromVal(args[0])
	rest := args[1+a.parameters:]
	if len(rest) > 1 {
		return cty.NilVal, fmt.Errorf("%s takes an expression and at most one condition", a.name)
	}
	var condition *customdecode.ExpressionClosure
	if len(rest) == 1 {
		condition = customdecode.ExpressionClosureFromVal(rest[0])
	}
	if j.check {
		j.checkClosure(expr, condition)
		return cty.UnknownVal(cty.Number), nil
	}
	values, err := j.collect(a, expr, condition)
	if err != nil {
		j.err = err
		return cty.NilVal, err
	}
	parameter := 0.0
	if a.parameters > 0 {
		parameter, _ = args[1].AsBigFloat().Float64()
	}
	if len(values) == 0 && a.name != "count" {
		j.err = fmt.Errorf("no valid run has a value for %s", a.name)
		return cty.NilVal, j.err
	}
	return finite(a.reduce(values, parameter))
}

// checkClosure evaluates an aggregate's arguments with unknown results.
func (j *judgement) checkClosure(expr, condition *customdecode.ExpressionClosure) {
	see := func(c *customdecode.ExpressionClosure) cty.Value {
		ctx := c.EvalContext.NewChild()
		ctx.Variables, ctx.Functions = j.static.Variables, j.steady.Parent().Functions
		v, diags := c.Expression.Value(ctx)
		j.diags = append(j.diags, diags...)
		if diags.HasErrors() {
			return cty.DynamicVal
		}
		return v
	}
	if v := see(expr); !holdsNumbers(v.Type()) {
		j.diags = append(j.diags, fault(expr.Expression.Range(), "Wrong type", "An aggregate takes numbers, not %s.", friendly(v.Type())))
	}
	if condition == nil {
		return
	}
	if v := see(condition); !canBe(v, cty.Bool) {
		j.diags = append(j.diags, fault(condition.Expression.Range(), "Wrong type of condition", "The second argument of an aggregate says in which runs it counts: true or false, not %s.", friendly(v.Type())))
	}
}

// collect returns the values of an expression in the runs where the condition
// is true; a list counts with all its elements.
func (j *judgement) collect(a aggregate, expr, condition *customdecode.ExpressionClosure) ([]float64, error) {
	var out []float64
	for _, run := range j.runs {
		if condition != nil {
			c := j.inRun(condition, run, a, true)
			if c.err != nil {
				return nil, c.err
			}
			if !c.truth {
				continue
			}
		}
		v := j.inRun(expr, run, a, false)
		if v.err != nil {
			return nil, v.err
		}
		j.used[run] = true
		out = append(out, v.numbers...)
	}
	return out, nil
}

// inRun evaluates a closure in a run. The bootstrap asks for the same values
// thousands of times, so they are kept, unless the expression also depends on
// names bound around the aggregate (a for expression).
func (j *judgement) inRun(c *customdecode.ExpressionClosure, run *results.Run, a aggregate, condition bool) perRun {
	key := cacheKey{c.Expression, run}
	if hit, ok := j.cache[key]; ok {
		return hit
	}
	refs := refsOf(c.Expression)
	v, err := j.evaluate(c.Expression, refs, run, c.EvalContext)
	out := perRun{err: err}
	switch {
	case err != nil:
	case condition:
		b, err := convert.Convert(v, cty.Bool)
		if err != nil || b.IsNull() || !b.IsKnown() {
			out.err = fmt.Errorf("%s: the condition of %s is neither true nor false", runText(run), a.name)
		} else {
			out.truth = b.True()
		}
	default:
		if out.numbers, err = numbersIn(a, v); err != nil {
			out.err = fmt.Errorf("%s: %w", runText(run), err)
		}
	}
	if !slices.ContainsFunc(refs, func(r ref) bool { _, known := roots[r.root]; return !known }) {
		j.cache[key] = out
	}
	return out
}

// numbersIn are the values that a run contributes to an aggregate.
func numbersIn(a aggregate, v cty.Value) ([]float64, error) {
	if a.name == "count" {
		n, err := countOf(v)
		return []float64{n}, err
	}
	return numbersOf(v)
}

// claim decodes a claim block.
func (l *loader) claim(j *judges, b *hcl.Block) {
	var x claimBlock
	d := newDecoder(l.files, j.steady)
	d.block(&hcl.Block{Type: b.Type, Body: b.Body, DefRange: b.DefRange}, &x)
	l.sink.add(d.diags...)
	c := claim.Claim{Name: b.Labels[0], Source: x.Source, NoInterval: x.Interval == "none"}
	if x.Interval != "none" && x.Interval != "bootstrap" {
		l.sink.add(fault(d.where([]string{"interval"}), "Bad value of interval", "It is \"bootstrap\" (the default) or \"none\", not %q.", x.Interval))
	}
	if x.Published != nil {
		if v := l.value(x.Published, j.steady); v.IsKnown() && !v.IsNull() {
			c.Published = textOf(v)
		}
	}
	if x.Requires != nil {
		if ok := l.boolean(x.Requires, j.steady, "requires"); ok != nil && !*ok {
			c.NotTestable = "requires = " + l.files.text(x.Requires.Range()) + " is false"
		}
	}
	if x.Condition == nil {
		return
	}
	l.checkClaim(j, &x)
	c.Eval = claimFunc(j, &x)
	l.result.Claims = append(l.result.Claims, c)
}

// checkClaim evaluates a claim with unknown results, to find wrong types.
func (l *loader) checkClaim(j *judges, x *claimBlock) {
	s := &judgement{judges: j, check: true}
	ctx := j.steady.NewChild()
	ctx.Functions = s.functions()
	value := cty.DynamicVal
	if x.Value != nil {
		value = l.value(x.Value, ctx)
		if !canBe(value, cty.Number) {
			l.sink.add(fault(x.Value.Range(), "Wrong type of value", "The value of a claim is a number, not %s.", friendly(value.Type())))
		}
	} else if r := valueRef(x.Condition); r != nil {
		l.report(fault(r.at, "value has no value here", "The claim has no attribute value that its condition could refer to."))
	}
	ctx.Variables = map[string]cty.Value{"value": value}
	if v := l.value(x.Condition, ctx); !canBe(v, cty.Bool) {
		l.sink.add(fault(x.Condition.Range(), "Wrong type of condition", "It must be true or false, not %s. Compare the value with a bound.", friendly(v.Type())))
	}
	l.sink.add(s.diags...)
}

func valueRef(e hcl.Expression) *ref {
	for _, r := range refsOf(e) {
		if r.root == "value" {
			return &r
		}
	}
	return nil
}

// claimFunc is Claim.Eval.
func claimFunc(shared *judges, x *claimBlock) func([]*results.Run) (claim.Estimate, error) {
	var mu sync.Mutex // guards cache
	cache := map[cacheKey]perRun{}
	return func(runs []*results.Run) (claim.Estimate, error) {
		mu.Lock()
		defer mu.Unlock()
		j := &judgement{judges: shared, cache: cache, runs: runs, used: make(map[*results.Run]bool, len(runs))}
		ctx := shared.steady.NewChild()
		ctx.Functions = j.functions()
		ctx.Variables = map[string]cty.Value{"value": cty.NullVal(cty.Number)}
		var out claim.Estimate
		if x.Value != nil {
			v, err := j.number(x.Value, ctx)
			if err != nil {
				return out, err
			}
			out.Value = &v
			ctx.Variables["value"] = cty.NumberFloatVal(v)
		}
		v, diags := x.Condition.Value(ctx)
		if diags.HasErrors() {
			return out, j.reason(diags)
		}
		b, err := convert.Convert(v, cty.Bool)
		if err != nil || b.IsNull() || !b.IsKnown() {
			return out, errors.New("the condition is neither true nor false")
		}
		out.Condition = b.True()
		for _, run := range runs {
			if j.used[run] {
				out.Used = append(out.Used, run)
				delete(j.used, run) // a resample may hold a run twice
			}
		}
		return out, nil
	}
}

func (j *judgement) number(e hcl.Expression, ctx *hcl.EvalContext) (float64, error) {
	v, diags := e.Value(ctx)
	if diags.HasErrors() {
		return 0, j.reason(diags)
	}
	n, err := convert.Convert(v, cty.Number)
	if err != nil || n.IsNull() || !n.IsKnown() {
		return 0, errors.New("the value of the claim is no number")
	}
	f, _ := n.AsBigFloat().Float64()
	return f, nil
}

// reason is the first mistake inside an aggregate, else that of the expression.
func (j *judgement) reason(diags hcl.Diagnostics) error {
	if j.err != nil {
		return j.err
	}
	return plainDiags(diags)
}
