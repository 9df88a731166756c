package lang

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// variable is a variable block with its type and value.
type variable struct {
	name     string
	block    variableBlock
	def      hcl.Range
	typ      cty.Type
	defaults *typeexpr.Defaults
	value    cty.Value
}

// declareVariables decodes the variable blocks, without their values.
func (l *loader) declareVariables() {
	l.variables = map[string]*variable{}
	for _, b := range l.doc.variables {
		v := &variable{name: b.Labels[0], def: b.DefRange(), typ: cty.DynamicPseudoType, value: cty.NilVal}
		if !identifier.MatchString(v.name) {
			l.sink.add(badIdentifier(b.LabelRanges[0], v.name, "variable"))
			continue
		}
		if first := l.variables[v.name]; first != nil {
			l.sink.add(fault(v.def, "Second variable "+v.name, "It is declared at %s already.", place(first.def)))
			continue
		}
		l.variables[v.name] = v
		l.decode(b, l.base, &v.block)
		l.typeVariable(v)
	}
}

// typeVariable reads the type constraint, and the default in it.
func (l *loader) typeVariable(v *variable) {
	if v.block.Type != nil {
		t, defaults, diags := typeexpr.TypeConstraintWithDefaults(v.block.Type)
		for _, d := range diags {
			l.sink.add(fault(*d.Subject, "Unknown type", "%s Known types: string, number, bool, any, list(…), set(…), map(…), tuple([…]), object({…}).", d.Detail))
		}
		if !diags.HasErrors() {
			v.typ, v.defaults = t, defaults
		}
	}
	if v.block.Default == nil {
		return
	}
	if u := usesOf(v.block.Default, nil); len(u.refs) > 0 {
		l.report(fault(u.refs[0].at, "Default is not constant", "The default of a variable refers to nothing: it is known before everything else. Use locals for what is computed."))
		v.value = cty.DynamicVal
		return
	}
	value := l.value(v.block.Default, l.base)
	if v.block.Type == nil && (value.Type() == cty.Number || value.Type() == cty.Bool || value.Type() == cty.String) {
		v.typ = value.Type()
	}
	v.value = l.convertVariable(v, value, func(why string) *hcl.Diagnostic {
		return fault(v.block.Default.Range(), "Bad default of var."+v.name, "%s.", why)
	})
}

func (l *loader) convertVariable(v *variable, value cty.Value, tell func(string) *hcl.Diagnostic) cty.Value {
	if v.defaults != nil && !value.IsNull() {
		value = v.defaults.Apply(value)
	}
	out, err := convert.Convert(value, v.typ)
	if err != nil {
		l.sink.add(tell(capital(err.Error())))
		return cty.DynamicVal
	}
	return out
}

// evaluateVariables gives every variable its value (flag before file of
// values before smoke before default), checks it and puts it into the base
// context.
func (l *loader) evaluateVariables() {
	l.smokeVariables()
	for _, name := range l.opts.VarFiles {
		l.readVarFile(name)
	}
	for _, name := range slices.Sorted(maps.Keys(l.opts.Variables)) {
		l.flagVariable(name, l.opts.Variables[name])
	}
	values := map[string]cty.Value{}
	l.result.Variables = map[string]string{}
	for name, v := range l.variables {
		if v.value == cty.NilVal {
			l.sink.add(fault(v.def, "No value for var."+name, "Give one with --var %s=…, in a file with --var-file, or as default in the block.", name))
			v.value = cty.UnknownVal(v.typ)
		}
		values[name] = v.value
		if v.value.IsWhollyKnown() {
			l.result.Variables[name] = textOf(v.value)
		}
	}
	l.base.Variables["var"] = cty.ObjectVal(values)
	for _, name := range slices.Sorted(maps.Keys(l.variables)) {
		l.validateVariable(l.variables[name])
	}
}

func (l *loader) smokeVariables() {
	values := l.smokeValues()
	if values == nil {
		return
	}
	l.eachItem(values, l.base, "variables", func(name string, at hcl.Range, value cty.Value) {
		v := l.variables[name]
		if v == nil {
			l.sink.add(fault(at, "Unknown reference var."+name, "%s", remedy(name, "variables", slices.Collect(maps.Keys(l.variables)))))
			return
		}
		v.value = l.convertVariable(v, value, func(why string) *hcl.Diagnostic {
			return fault(at, "Bad value of var."+name, "%s.", why)
		})
	})
}

// eachItem calls fn for the items of an object expression, in their order.
func (l *loader) eachItem(e hcl.Expression, ctx *hcl.EvalContext, what string, fn func(name string, at hcl.Range, value cty.Value)) {
	v := l.value(e, ctx)
	if v.IsNull() || !v.IsKnown() {
		return
	}
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		l.sink.add(fault(e.Range(), "Wrong type of "+what, "It must be a map: { name = value }."))
		return
	}
	places := map[string]hcl.Range{}
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		for _, p := range pairs {
			if k, d := p.Key.Value(ctx); !d.HasErrors() && k.Type() == cty.String && k.IsKnown() && !k.IsNull() {
				places[k.AsString()] = p.Value.Range()
			}
		}
	}
	for it := v.ElementIterator(); it.Next(); {
		k, item := it.Element()
		at, ok := places[k.AsString()]
		if !ok {
			at = e.Range()
		}
		fn(k.AsString(), at, item)
	}
}

// readVarFile applies a file of "name = value" lines.
func (l *loader) readVarFile(name string) {
	if !l.files.read(nil, name, l.sink) || l.files.parsed[name] == nil {
		return
	}
	body, ok := l.files.parsed[name].Body.(*hclsyntax.Body)
	if !ok {
		return
	}
	for _, b := range body.Blocks {
		l.sink.add(fault(b.DefRange(), "Block in a file of values", "A file of values has lines of name = value only."))
	}
	for _, a := range sortedAttributes(body.Attributes) {
		v := l.variables[a.Name]
		if v == nil {
			l.sink.add(fault(a.NameRange, "Unknown reference var."+a.Name, "%s", remedy(a.Name, "variables", slices.Collect(maps.Keys(l.variables)))))
			continue
		}
		if u := usesOf(a.Expr, nil); len(u.refs) > 0 {
			l.report(fault(u.refs[0].at, "Value is not constant", "A file of values refers to nothing."))
			continue
		}
		v.value = l.convertVariable(v, l.value(a.Expr, l.base), func(why string) *hcl.Diagnostic {
			return fault(a.Expr.Range(), "Bad value of var."+v.name, "%s.", why)
		})
	}
}

// flagVariable applies --var name=text: the text itself for a string, else an
// expression.
func (l *loader) flagVariable(name, text string) {
	v := l.variables[name]
	if v == nil {
		l.sink.add(globalFault("Unknown variable --var "+name, "%s", remedy(name, "variables", slices.Collect(maps.Keys(l.variables)))))
		return
	}
	tell := func(why string) *hcl.Diagnostic {
		return globalFault("Bad value --var "+name+"="+text, "%s. It must be %s.", why, v.typ.FriendlyNameForConstraint())
	}
	value := cty.StringVal(text)
	if v.typ != cty.String && (v.typ != cty.DynamicPseudoType || v.block.Type != nil) {
		e, diags := hclsyntax.ParseExpression([]byte(text), "--var "+name, hcl.InitialPos)
		if diags.HasErrors() || len(usesOf(e, nil).refs) > 0 {
			why := "It is no constant value; text in lists and maps stands in quotes"
			if v.typ.IsPrimitiveType() {
				why = fmt.Sprintf("%q is not %s", text, friendly(v.typ))
			}
			l.sink.add(tell(why))
			v.value = cty.UnknownVal(v.typ)
			return
		}
		parsed, diags := e.Value(l.base)
		if diags.HasErrors() {
			l.sink.add(tell(diags[0].Detail))
			v.value = cty.UnknownVal(v.typ)
			return
		}
		value = parsed
	}
	v.value = l.convertVariable(v, value, tell)
}

func (l *loader) validateVariable(v *variable) {
	if !v.value.IsWhollyKnown() {
		return
	}
	for _, rule := range v.block.Validation {
		if rule.Condition == nil {
			continue
		}
		ok := l.boolean(rule.Condition, l.base, "condition")
		if ok == nil || *ok {
			continue
		}
		message := "The value does not meet the condition."
		if rule.ErrorMessage != nil {
			if m := l.value(rule.ErrorMessage, l.base); m.IsKnown() && !m.IsNull() && m.Type() == cty.String {
				message = m.AsString()
			}
		}
		l.sink.add(fault(v.def, "Bad value of var."+v.name, "%s It is %s; the condition is at %s.", message, textOf(v.value), place(rule.Condition.Range())))
	}
}

// boolean evaluates a condition; nil means that it has no value (which has
// been told).
func (l *loader) boolean(e hcl.Expression, ctx *hcl.EvalContext, name string) *bool {
	v := l.value(e, ctx)
	if !v.IsKnown() {
		return nil
	}
	b, err := convert.Convert(v, cty.Bool)
	if err != nil || b.IsNull() {
		l.sink.add(fault(e.Range(), "Wrong type of "+name, "It must be true or false, not %s.", friendly(v.Type())))
		return nil
	}
	t := b.True()
	return &t
}
