package lang

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
)

// role is what a tagged field stands for in a block.
type role int

const (
	roleAttribute role = iota
	roleBlock
	roleLabel
)

// field is one tagged field of a configuration struct.
type field struct {
	name       string
	role       role
	required   bool
	repeated   bool // blocks: a slice
	defaultTxt string
	doc        string
	index      []int        // for reflect.Value.FieldByIndex
	typ        reflect.Type // of the field; of the element struct for blocks
	schema     *schema      // of a block's struct
}

// schema is what a configuration struct says about a block.
type schema struct {
	typ    reflect.Type
	fields []*field
	body   *hcl.BodySchema
}

var schemas sync.Map // reflect.Type -> *schema; immutable once stored

// schemaOf derives the schema of a struct type from its tags. A tag that
// cannot be understood is a mistake of this program, so it panics.
func schemaOf(t reflect.Type) *schema {
	if s, ok := schemas.Load(t); ok {
		return s.(*schema)
	}
	s := &schema{typ: t, body: &hcl.BodySchema{}}
	s.collect(t, nil)
	for _, f := range s.fields {
		switch f.role {
		case roleAttribute:
			// Requirement is checked by the decoder, which knows the remedy.
			s.body.Attributes = append(s.body.Attributes, hcl.AttributeSchema{Name: f.name})
		case roleBlock:
			h := hcl.BlockHeaderSchema{Type: f.name}
			for _, l := range f.schema.labels() {
				h.LabelNames = append(h.LabelNames, l.name)
			}
			s.body.Blocks = append(s.body.Blocks, h)
		}
	}
	schemas.Store(t, s)
	return s
}

func (s *schema) collect(t reflect.Type, prefix []int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(append([]int{}, prefix...), i)
		tag, tagged := sf.Tag.Lookup("hcl")
		if sf.Anonymous && !tagged && sf.Type.Kind() == reflect.Struct {
			s.collect(sf.Type, index)
			continue
		}
		if !tagged || tag == "-" {
			continue
		}
		s.fields = append(s.fields, newField(t, sf, tag, index))
	}
}

func newField(t reflect.Type, sf reflect.StructField, tag string, index []int) *field {
	if !sf.IsExported() {
		panic(fmt.Sprintf("lang: %s.%s has an hcl tag but is not exported", t, sf.Name))
	}
	name, kind, _ := strings.Cut(tag, ",")
	f := &field{name: name, index: index, typ: sf.Type, doc: sf.Tag.Get("doc"), defaultTxt: sf.Tag.Get("default")}
	switch kind {
	case "":
		f.required = true
	case "optional":
	case "label":
		f.role = roleLabel
	case "block":
		f.role = roleBlock
		e := sf.Type
		if e.Kind() == reflect.Slice {
			f.repeated, e = true, e.Elem()
		}
		if e.Kind() == reflect.Pointer {
			e = e.Elem()
		}
		if e.Kind() != reflect.Struct {
			panic(fmt.Sprintf("lang: block %s.%s is no struct", t, sf.Name))
		}
		f.typ, f.schema = e, schemaOf(e)
	default:
		panic(fmt.Sprintf("lang: %s.%s: tag kind %q is not known", t, sf.Name, kind))
	}
	return f
}

func (s *schema) labels() []*field {
	var out []*field
	for _, f := range s.fields {
		if f.role == roleLabel {
			out = append(out, f)
		}
	}
	return out
}

func (s *schema) names(r role) []string {
	var out []string
	for _, f := range s.fields {
		if f.role == r {
			out = append(out, f.name)
		}
	}
	return out
}

func (s *schema) field(name string) *field {
	for _, f := range s.fields {
		if f.name == name && f.role != roleLabel {
			return f
		}
	}
	return nil
}
