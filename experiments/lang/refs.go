package lang

import (
	"math/big"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// ref is one place where an expression names something: root.path.
type ref struct {
	root      string
	path      []string // the static steps after the root
	traversal hcl.Traversal
	at        hcl.Range
	inner     bool // inside an argument of an aggregate
}

// first is the step after the root, "" where there is none.
func (r ref) first() string {
	if len(r.path) == 0 {
		return ""
	}
	return r.path[0]
}

// stepRange is the range of step i of the path, for messages about it.
func (r ref) stepRange(i int) hcl.Range {
	if i+1 < len(r.traversal) {
		return r.traversal[i+1].SourceRange()
	}
	return r.at
}

// call is one function call.
type call struct {
	name  string
	at    hcl.Range
	inner bool
}

// uses is everything that an expression or body refers to.
type uses struct {
	refs  []ref
	calls []call
	huge  []hcl.Range // number literals beyond any use
}

// collector walks expressions; names bound by for expressions and dynamic
// blocks are not references.
type collector struct {
	uses
	aggregates map[string]bool // functions whose arguments are per run
	bound      []map[string]struct{}
	depth      int // of aggregate calls
}

var _ hclsyntax.Walker = (*collector)(nil)

// Enter implements hclsyntax.Walker.
func (c *collector) Enter(n hclsyntax.Node) hcl.Diagnostics {
	switch x := n.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		c.reference(x)
	case *hclsyntax.SplatExpr:
		c.splat(x)
	case hclsyntax.ChildScope:
		c.bound = append(c.bound, x.LocalNames)
	case *hclsyntax.FunctionCallExpr:
		c.calls = append(c.calls, call{x.Name, x.NameRange, c.depth > 0})
		if c.aggregates[x.Name] {
			c.depth++
		}
	case *hclsyntax.LiteralValueExpr:
		if x.Val.Type() == cty.Number && !x.Val.IsNull() && tooLarge(x.Val.AsBigFloat()) {
			c.huge = append(c.huge, x.SrcRange)
		}
	}
	return nil
}

// Exit implements hclsyntax.Walker.
func (c *collector) Exit(n hclsyntax.Node) hcl.Diagnostics {
	switch x := n.(type) {
	case hclsyntax.ChildScope:
		c.bound = c.bound[:len(c.bound)-1]
	case *hclsyntax.FunctionCallExpr:
		if c.aggregates[x.Name] {
			c.depth--
		}
	}
	return nil
}

// tooLarge reports numbers whose decimal text would fill the memory.
func tooLarge(n *big.Float) bool {
	e := n.MantExp(nil)
	return e > 1100 || e < -1100
}

func (c *collector) reference(x *hclsyntax.ScopeTraversalExpr) {
	root := x.Traversal.RootName()
	for _, names := range c.bound {
		if _, ok := names[root]; ok {
			return
		}
	}
	r := ref{root: root, traversal: x.Traversal, at: x.SrcRange, inner: c.depth > 0}
	for _, step := range x.Traversal[1:] {
		name, ok := stepName(step)
		if !ok {
			break
		}
		r.path = append(r.path, name)
	}
	c.refs = append(c.refs, r)
}

func stepName(step hcl.Traverser) (string, bool) {
	switch s := step.(type) {
	case hcl.TraverseAttr:
		return s.Name, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.Number {
			return "*", true // one element of a list
		}
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), true
		}
	}
	return "", false
}

// splat collects result.NAME.flows[*].METRIC as one reference, so that the
// metric can be checked.
func (c *collector) splat(x *hclsyntax.SplatExpr) {
	source, ok := x.Source.(*hclsyntax.ScopeTraversalExpr)
	each, ok2 := x.Each.(*hclsyntax.RelativeTraversalExpr)
	if !ok || !ok2 || source.Traversal.RootName() != "result" {
		return
	}
	if _, direct := each.Source.(*hclsyntax.AnonSymbolExpr); !direct {
		return
	}
	full := append(append(hcl.Traversal{}, source.Traversal...), hcl.TraverseIndex{Key: cty.Zero, SrcRange: x.MarkerRange})
	full = append(full, each.Traversal...)
	before := len(c.refs)
	c.reference(&hclsyntax.ScopeTraversalExpr{Traversal: full, SrcRange: x.SrcRange})
	if len(c.refs) > before && len(c.refs[before].path) < 4 {
		c.refs = c.refs[:before]
	}
}

// expression collects from one expression.
func (c *collector) expression(e hcl.Expression) {
	for { // what a dynamic block made is wrapped
		w, ok := e.(interface{ UnwrapExpression() hcl.Expression })
		if !ok {
			break
		}
		if e = w.UnwrapExpression(); e == nil {
			return
		}
	}
	if n, ok := e.(hclsyntax.Node); ok {
		_ = hclsyntax.Walk(n, c) // the walker returns no diagnostics
	}
}

// body collects from a body with its nested and dynamic blocks.
func (c *collector) body(b *hclsyntax.Body) {
	for _, a := range sortedAttributes(b.Attributes) {
		c.expression(a.Expr)
	}
	for _, x := range b.Blocks {
		if x.Type == "dynamic" {
			c.dynamic(x)
		} else {
			c.body(x.Body)
		}
	}
}

// dynamic collects from a dynamic block: its iterator is bound in labels and
// content, not in for_each.
func (c *collector) dynamic(b *hclsyntax.Block) {
	iterator := ""
	if len(b.Labels) > 0 {
		iterator = b.Labels[0]
	}
	if a := b.Body.Attributes["iterator"]; a != nil {
		if name := hcl.ExprAsKeyword(a.Expr); name != "" {
			iterator = name
		}
	}
	if a := b.Body.Attributes["for_each"]; a != nil {
		c.expression(a.Expr)
	}
	c.bound = append(c.bound, map[string]struct{}{iterator: {}})
	if a := b.Body.Attributes["labels"]; a != nil {
		c.expression(a.Expr)
	}
	for _, x := range b.Body.Blocks {
		if x.Type == "dynamic" {
			c.dynamic(x)
		} else {
			c.body(x.Body)
		}
	}
	c.bound = c.bound[:len(c.bound)-1]
}

// usesOf returns what an expression refers to.
func usesOf(e hcl.Expression, aggregates map[string]bool) uses {
	c := collector{aggregates: aggregates}
	c.expression(e)
	return c.uses
}

// usesOfBlock returns what a top-level block refers to.
func usesOfBlock(b *hclsyntax.Block, aggregates map[string]bool) uses {
	c := collector{aggregates: aggregates}
	if b.Type == "dynamic" {
		c.dynamic(b)
	} else {
		c.body(b.Body)
	}
	return c.uses
}

// dependencies are the parts of a point that something depends on, directly or
// through locals.
type dependencies struct {
	sweep  []string // names, sorted
	all    bool     // of the sweep
	run    bool
	node   bool
	result bool
}

func (d *dependencies) onPoint() bool { return d.all || d.run || d.node || len(d.sweep) > 0 }

func (d *dependencies) merge(o dependencies) {
	d.all, d.run, d.node, d.result = d.all || o.all, d.run || o.run, d.node || o.node, d.result || o.result
	for _, s := range o.sweep {
		if i, found := slices.BinarySearch(d.sweep, s); !found {
			d.sweep = slices.Insert(d.sweep, i, s)
		}
	}
}

// dependenciesOf follows references through locals.
func (l *loader) dependenciesOf(u uses) dependencies {
	var d dependencies
	for _, r := range u.refs {
		switch r.root {
		case "sweep":
			if r.first() == "" {
				d.all = true
			} else {
				d.merge(dependencies{sweep: []string{r.first()}})
			}
		case "run":
			d.run = true
		case "node":
			d.node = true
		case "result":
			d.result = true
		case "local":
			for name, x := range l.locals {
				if r.first() == "" || r.first() == name {
					d.merge(x.deps)
				}
			}
		}
	}
	return d
}
