package lang

import (
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"wirelab/emul/attr"
)

// decoder fills configuration structs from bodies. It goes on after a mistake,
// so that one pass finds all of them.
type decoder struct {
	files *Files
	ctx   *hcl.EvalContext
	diags hcl.Diagnostics
	// at tells where each attribute and block was written, by dotted path.
	at map[string]hcl.Range
}

func newDecoder(files *Files, ctx *hcl.EvalContext) *decoder {
	return &decoder{files: files, ctx: ctx, at: map[string]hcl.Range{}}
}

// block decodes one block into target, a pointer to a struct. labels are those
// that belong to the struct (not the block's kind and name).
func (d *decoder) block(b *hcl.Block, target any) {
	d.at[""] = b.DefRange
	d.body(b.Body, b.DefRange, reflect.ValueOf(target).Elem(), "")
}

// body decodes a body whose header is at def into dst; path is where it lies
// below the top block.
func (d *decoder) body(body hcl.Body, def hcl.Range, dst reflect.Value, path string) {
	s := schemaOf(dst.Type())
	content, diags := body.Content(s.body)
	for _, x := range diags {
		d.diags = append(d.diags, d.explain(x, s))
	}
	d.content(s, content, def, dst, path)
}

// partial decodes the attributes and blocks that dst knows and leaves the
// others to someone else.
func (d *decoder) partial(body hcl.Body, def hcl.Range, target any) {
	d.at[""] = def
	dst := reflect.ValueOf(target).Elem()
	s := schemaOf(dst.Type())
	content, _, diags := body.PartialContent(s.body)
	d.diags = append(d.diags, diags...)
	d.content(s, content, def, dst, "")
}

func (d *decoder) content(s *schema, content *hcl.BodyContent, def hcl.Range, dst reflect.Value, path string) {
	for _, f := range s.fields {
		where := join2(path, f.name)
		switch f.role {
		case roleAttribute:
			d.attribute(f, content.Attributes[f.name], def, dst.FieldByIndex(f.index), where)
		case roleBlock:
			d.blocks(f, content.Blocks, dst.FieldByIndex(f.index), where)
		}
	}
}

func join2(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (d *decoder) attribute(f *field, a *hcl.Attribute, def hcl.Range, dst reflect.Value, path string) {
	if a == nil {
		d.absent(f, def, dst)
		return
	}
	d.at[path] = a.Expr.Range()
	if f.typ == expressionType {
		dst.Set(reflect.ValueOf(&a.Expr).Elem())
		return
	}
	v, diags := a.Expr.Value(d.ctx)
	d.diags = append(d.diags, diags...)
	if diags.HasErrors() {
		return
	}
	if v.IsNull() {
		d.absent(f, def, dst)
		return
	}
	if !v.IsWhollyKnown() {
		return // depends on a mistake told elsewhere
	}
	if err := setValue(dst, v); err != nil {
		d.diags = append(d.diags, err.diagnostic(f.name, a.Expr.Range()))
	}
}

// absent applies the default, or tells that the attribute must be given.
func (d *decoder) absent(f *field, def hcl.Range, dst reflect.Value) {
	if f.required {
		doc := ""
		if f.doc != "" {
			doc = " " + f.doc
		}
		d.diags = append(d.diags, fault(def, "Missing attribute "+f.name, "It must be given.%s", doc))
		return
	}
	if err := setDefault(f, dst); err != nil {
		panic("lang: default of " + f.name + ": " + err.Error()) // a mistake of this program
	}
}

func (d *decoder) blocks(f *field, all hcl.Blocks, dst reflect.Value, path string) {
	n := 0
	for _, b := range all {
		if b.Type != f.name {
			continue
		}
		if n++; n > 1 && !f.repeated {
			d.diags = append(d.diags, fault(b.DefRange, "Second "+f.name+" block", "Only one is allowed here; the first is at %s.", place(d.at[path])))
			continue
		}
		element, where := dst, path
		switch {
		case f.repeated:
			element = reflect.New(f.typ).Elem()
			where = join2(path, itoa(n-1))
			d.at[where] = b.DefRange
		case dst.Kind() == reflect.Pointer:
			dst.Set(reflect.New(f.typ))
			element = dst.Elem()
		}
		if n == 1 {
			d.at[path] = b.DefRange
		}
		for i, l := range f.schema.labels() {
			if i < len(b.Labels) {
				element.FieldByIndex(l.index).SetString(b.Labels[i])
				d.at[join2(where, l.name)] = b.LabelRanges[i]
			}
		}
		d.body(b.Body, b.DefRange, element, where)
		if f.repeated {
			d.append(dst, element)
		}
	}
	if n == 0 && !f.repeated && dst.Kind() == reflect.Struct {
		setDefaults(f.schema, dst)
	}
}

func (d *decoder) append(dst, element reflect.Value) {
	if dst.Type().Elem().Kind() == reflect.Pointer {
		element = element.Addr()
	}
	dst.Set(reflect.Append(dst, element))
}

// explain rewrites the parser's words about a body, naming what is known.
func (d *decoder) explain(x *hcl.Diagnostic, s *schema) *hcl.Diagnostic {
	if x.Subject == nil {
		return x
	}
	name := strings.Trim(strings.TrimSpace(d.files.text(*x.Subject)), `"`)
	known := s.field(name)
	switch x.Summary {
	case "Unsupported argument":
		if known != nil && known.role == roleBlock {
			return fault(*x.Subject, "Not a block", "%s is a block: write %s { … } without the equals sign.", name, name)
		}
		return fault(*x.Subject, "Unknown attribute "+name, "%s", d.known(name, s))
	case "Unsupported block type":
		if why := later[name]; why != "" {
			return fault(*x.Subject, "Not available: "+name, "%s", why)
		}
		if known != nil && known.role == roleAttribute {
			return fault(*x.Subject, "Not an attribute", "%s is an attribute: write %s = … with an equals sign.", name, name)
		}
		return fault(*x.Subject, "Unknown block "+name, "%s", d.known(name, s))
	}
	return x
}

func (d *decoder) known(name string, s *schema) string {
	attributes, blocks := s.names(roleAttribute), s.names(roleBlock)
	text := ""
	if n := nearest(name, slices.Concat(attributes, blocks)); n != "" {
		text = "Did you mean \"" + n + "\"? "
	}
	if len(attributes) == 0 && len(blocks) == 0 {
		return text + "This block takes nothing."
	}
	if len(attributes) > 0 {
		text += "Known attributes: " + strings.Join(attributes, ", ") + "."
	}
	if len(blocks) > 0 {
		text += " Known blocks: " + strings.Join(blocks, ", ") + "."
	}
	return strings.TrimSpace(text)
}

// problems turns what a package found wrong with a decoded block into
// diagnostics at the attribute that is meant.
func (d *decoder) problems(list []attr.Problem) {
	for _, p := range list {
		d.diags = append(d.diags, problem(p, d.where(p.Path)))
	}
}

// problem makes one diagnostic, in the form that all have.
func problem(p attr.Problem, at hcl.Range) *hcl.Diagnostic {
	detail := capital(strings.TrimSpace(p.Detail))
	if detail != "" && !strings.ContainsAny(detail[len(detail)-1:], ".?!") {
		detail += "."
	}
	x := fault(at, capital(p.Summary), "%s", detail)
	if p.Warning {
		x.Severity = hcl.DiagWarning
	}
	return x
}

// where returns the range of the longest known beginning of path.
func (d *decoder) where(path []string) hcl.Range {
	for n := len(path); n > 0; n-- {
		if r, ok := d.at[strings.Join(path[:n], ".")]; ok {
			return r
		}
	}
	return d.at[""]
}
