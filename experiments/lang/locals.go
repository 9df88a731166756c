package lang

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// local is one named expression.
type local struct {
	name string
	expr hcl.Expression
	at   hcl.Range // of the name
	uses uses
	deps dependencies // through other locals too
	// visit: 0 not seen, 1 on the path, 2 done.
	visit  int
	cyclic bool
}

// readLocals collects locals of all blocks and orders them, each after those
// it refers to.
func (l *loader) readLocals() {
	l.locals = map[string]*local{}
	var written []*local
	for _, b := range l.doc.locals {
		for _, x := range b.Body.Blocks {
			l.sink.add(fault(x.DefRange(), "Block in locals", "locals has name = value lines only; blocks stand outside."))
		}
		for _, a := range sortedAttributes(b.Body.Attributes) {
			if first := l.locals[a.Name]; first != nil {
				l.sink.add(fault(a.NameRange, "Second local "+a.Name, "It is defined at %s already.", place(first.at)))
				continue
			}
			x := &local{name: a.Name, expr: a.Expr, at: a.NameRange, uses: usesOf(a.Expr, nil)}
			l.locals[a.Name] = x
			written = append(written, x)
		}
	}
	for _, x := range written {
		l.visitLocal(x, nil)
	}
}

// visitLocal orders x after its references, depth first, and tells a cycle.
func (l *loader) visitLocal(x *local, path []string) {
	if x.visit == 2 {
		return
	}
	path = append(path, "local."+x.name)
	x.visit = 1
	for _, r := range x.uses.refs {
		for _, y := range l.localsOf(r) {
			if y.visit == 1 {
				l.tellCycle(y, r, path)
				x.cyclic = true
				continue
			}
			l.visitLocal(y, path)
			x.cyclic = x.cyclic || y.cyclic
		}
	}
	x.deps = l.dependenciesOf(x.uses)
	x.visit = 2
	l.order = append(l.order, x)
}

// localsOf are the locals that a reference names: one, or all of them where it
// says local without a name.
func (l *loader) localsOf(r ref) []*local {
	if r.root != "local" {
		return nil
	}
	if r.first() != "" {
		if y := l.locals[r.first()]; y != nil {
			return []*local{y}
		}
		return nil
	}
	var out []*local
	for _, name := range slices.Sorted(maps.Keys(l.locals)) {
		out = append(out, l.locals[name])
	}
	return out
}

func (l *loader) tellCycle(y *local, r ref, path []string) {
	start := slices.Index(path, "local."+y.name)
	cycle := append(slices.Clone(path[start:]), "local."+y.name)
	l.report(fault(r.at, "Cycle among locals", "%s: none of them can be known first. Write one without the others.", strings.Join(cycle, " -> ")))
}

// evaluateLocals returns the object local: of those that do not depend on a
// point (steady), or of all. Locals see var, host and what ctx has.
func (l *loader) evaluateLocals(ctx *hcl.EvalContext, steady bool) cty.Value {
	values := make(map[string]cty.Value, len(l.order))
	scope := ctx.NewChild()
	scope.Variables = map[string]cty.Value{}
	for _, x := range l.order {
		if steady && x.deps.onPoint() {
			continue
		}
		if x.cyclic || x.deps.result || x.deps.node {
			values[x.name] = cty.DynamicVal
			continue
		}
		scope.Variables["local"] = cty.ObjectVal(values)
		values[x.name] = l.value(x.expr, scope)
	}
	return cty.ObjectVal(values)
}
