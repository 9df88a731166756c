package lang

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"wirelab/emul/unit"
)

var (
	expressionType      = reflect.TypeFor[hcl.Expression]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// quantities parse the types that are written as text with a unit.
var quantities = map[reflect.Type]func(string) (any, error){
	reflect.TypeFor[time.Duration](): func(s string) (any, error) { return unit.ParseDuration(s) },
	reflect.TypeFor[unit.Rate]():     func(s string) (any, error) { return unit.ParseRate(s) },
	reflect.TypeFor[unit.Size]():     func(s string) (any, error) { return unit.ParseSize(s) },
	reflect.TypeFor[unit.Limit]():    func(s string) (any, error) { return unit.ParseLimit(s) },
	reflect.TypeFor[unit.Ratio]():    func(s string) (any, error) { return unit.ParseRatio(s) },
}

// valueError is a value that does not fit its attribute.
type valueError struct{ summary, detail string }

func (e *valueError) diagnostic(name string, at hcl.Range) *hcl.Diagnostic {
	return fault(at, fmt.Sprintf(e.summary, name), "%s", e.detail)
}

func (e *valueError) Error() string { return fmt.Sprintf(e.summary, "value") + ": " + e.detail }

// setValue stores a known, non-null value.
func setValue(dst reflect.Value, v cty.Value) *valueError {
	t := dst.Type()
	if parse := quantities[t]; parse != nil {
		return setQuantity(dst, v, parse)
	}
	if t.Kind() == reflect.Pointer {
		p := reflect.New(t.Elem())
		if err := setValue(p.Elem(), v); err != nil {
			return err
		}
		dst.Set(p)
		return nil
	}
	if reflect.PointerTo(t).Implements(textUnmarshalerType) {
		return setText(dst, v)
	}
	switch t.Kind() {
	case reflect.Slice:
		return setSlice(dst, v)
	case reflect.Map:
		return setMap(dst, v)
	case reflect.Interface:
		return setAny(dst, v)
	}
	return setScalar(dst, v)
}

func setQuantity(dst reflect.Value, v cty.Value, parse func(string) (any, error)) *valueError {
	var text string
	switch v.Type() {
	case cty.String:
		text = v.AsString()
	case cty.Number:
		text = numberText(v)
	default:
		return wrongType("text with a unit", v)
	}
	q, err := parse(text)
	if err == nil && v.Type() == cty.Number {
		// A number that happens to parse (a ratio) still says no unit.
		return &valueError{"Missing unit of %s", fmt.Sprintf(`Quantities are text with a unit, did you mean %s?`, ratioHint(v))}
	}
	if err == nil {
		dst.Set(reflect.ValueOf(q))
		return nil
	}
	var u *unit.Error
	if errors.As(err, &u) && strings.HasPrefix(u.Hint, "missing unit") {
		return &valueError{"Missing unit of %s", capital(err.Error()) + " A quantity is text with a unit."}
	}
	return &valueError{"Bad value of %s", capital(err.Error()) + "."}
}

// ratioHint writes a bare number in the two ways a ratio may be written.
func ratioHint(v cty.Value) string {
	f, _ := v.AsBigFloat().Float64()
	if f >= 1 {
		return fmt.Sprintf("%q", trimFloat(f)+"%")
	}
	return fmt.Sprintf("%q (the same as %q)", trimFloat(f*100)+"%", trimFloat(f))
}

func setText(dst reflect.Value, v cty.Value) *valueError {
	s, err := convert.Convert(v, cty.String)
	if err != nil {
		return wrongType("text", v)
	}
	if err := dst.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s.AsString())); err != nil {
		return &valueError{"Bad value of %s", capital(err.Error()) + "."}
	}
	return nil
}

func setSlice(dst reflect.Value, v cty.Value) *valueError {
	t := v.Type()
	if !t.IsListType() && !t.IsTupleType() && !t.IsSetType() {
		return wrongType("a list: [ … ]", v)
	}
	out := reflect.MakeSlice(dst.Type(), v.LengthInt(), v.LengthInt())
	i := 0
	for it := v.ElementIterator(); it.Next(); i++ {
		_, e := it.Element()
		if e.IsNull() {
			return &valueError{"Bad value of %s", fmt.Sprintf("Element %d is null.", i)}
		}
		if err := setValue(out.Index(i), e); err != nil {
			return &valueError{err.summary, fmt.Sprintf("Element %d: %s", i, err.detail)}
		}
	}
	dst.Set(out)
	return nil
}

func setMap(dst reflect.Value, v cty.Value) *valueError {
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return wrongType("a map: { name = … }", v)
	}
	out := reflect.MakeMap(dst.Type())
	for it := v.ElementIterator(); it.Next(); {
		k, e := it.Element()
		if e.IsNull() {
			continue
		}
		value := reflect.New(dst.Type().Elem()).Elem()
		if err := setValue(value, e); err != nil {
			return &valueError{err.summary, fmt.Sprintf("Key %q: %s", k.AsString(), err.detail)}
		}
		out.SetMapIndex(reflect.ValueOf(k.AsString()).Convert(dst.Type().Key()), value)
	}
	dst.Set(out)
	return nil
}

// setAny stores a string, number (float64), bool, list or map as plain Go.
func setAny(dst reflect.Value, v cty.Value) *valueError {
	plain, err := plainValue(v)
	if err != nil {
		return err
	}
	if plain != nil {
		dst.Set(reflect.ValueOf(plain))
	}
	return nil
}

func plainValue(v cty.Value) (any, *valueError) {
	t := v.Type()
	switch {
	case v.IsNull():
		return nil, nil
	case t == cty.String:
		return v.AsString(), nil
	case t == cty.Bool:
		return v.True(), nil
	case t == cty.Number:
		f, _ := v.AsBigFloat().Float64()
		return f, nil
	case t.IsObjectType() || t.IsMapType():
		out := map[string]any{}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			p, err := plainValue(e)
			if err != nil {
				return nil, err
			}
			out[k.AsString()] = p
		}
		return out, nil
	case t.IsListType() || t.IsTupleType() || t.IsSetType():
		out := []any{}
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			p, err := plainValue(e)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
		return out, nil
	}
	return nil, wrongType("text, a number, a list or a map", v)
}

func setScalar(dst reflect.Value, v cty.Value) *valueError {
	switch dst.Kind() {
	case reflect.String:
		s, err := convert.Convert(v, cty.String)
		if err != nil {
			return wrongType("text", v)
		}
		dst.SetString(s.AsString())
	case reflect.Bool:
		b, err := convert.Convert(v, cty.Bool)
		if err != nil {
			return wrongType("true or false", v)
		}
		dst.SetBool(b.True())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		n, err := convert.Convert(v, cty.Number)
		if err != nil {
			return wrongType("a number", v)
		}
		return setNumber(dst, n.AsBigFloat())
	default:
		panic(fmt.Sprintf("lang: no attribute can have the type %s", dst.Type()))
	}
	return nil
}

func setNumber(dst reflect.Value, n *big.Float) *valueError {
	if k := dst.Kind(); k == reflect.Float32 || k == reflect.Float64 {
		f, _ := n.Float64()
		if math.IsInf(f, 0) {
			return &valueError{"Bad value of %s", "It is infinite or beyond 10^308."}
		}
		dst.SetFloat(f)
		return nil
	}
	if !n.IsInt() {
		return &valueError{"Bad value of %s", fmt.Sprintf("It must be a whole number, not %s.", n.Text('g', 10))}
	}
	if dst.CanUint() {
		u, accuracy := n.Uint64()
		if accuracy != big.Exact || dst.OverflowUint(u) {
			return &valueError{"Bad value of %s", fmt.Sprintf("%s is negative or too large.", n.Text('g', 20))}
		}
		dst.SetUint(u)
		return nil
	}
	i, accuracy := n.Int64()
	if accuracy != big.Exact || dst.OverflowInt(i) {
		return &valueError{"Bad value of %s", fmt.Sprintf("%s is too large.", n.Text('g', 20))}
	}
	dst.SetInt(i)
	return nil
}

// friendly names a type for people.
func friendly(t cty.Type) string {
	switch {
	case t == cty.String:
		return "text"
	case t == cty.Number:
		return "a number"
	case t == cty.Bool:
		return "true or false"
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		return "a list"
	case t.IsObjectType() || t.IsMapType():
		return "a map"
	}
	return t.FriendlyName()
}

func wrongType(want string, v cty.Value) *valueError {
	return &valueError{"Wrong type of %s", fmt.Sprintf("It must be %s, not %s.", want, friendly(v.Type()))}
}

// setDefault applies the default tag of a field, if it has one, and the
// defaults of the blocks inside.
func setDefault(f *field, dst reflect.Value) error {
	if f.defaultTxt == "" {
		return nil
	}
	t := dst.Type()
	v := cty.StringVal(f.defaultTxt)
	if t.Kind() == reflect.Slice {
		var list []cty.Value
		for _, s := range strings.Split(f.defaultTxt, ",") {
			list = append(list, cty.StringVal(strings.TrimSpace(s)))
		}
		v = cty.TupleVal(list)
	}
	if err := setValue(dst, v); err != nil {
		return err
	}
	return nil
}

// setDefaults applies the defaults of a struct whose block is absent.
func setDefaults(s *schema, dst reflect.Value) {
	for _, f := range s.fields {
		switch {
		case f.role == roleAttribute:
			if err := setDefault(f, dst.FieldByIndex(f.index)); err != nil {
				panic("lang: default of " + f.name + ": " + err.Error())
			}
		case f.role == roleBlock && !f.repeated && dst.FieldByIndex(f.index).Kind() == reflect.Struct:
			setDefaults(f.schema, dst.FieldByIndex(f.index))
		}
	}
}

// numberText writes a number without an exponent where it is whole.
func numberText(v cty.Value) string {
	n := v.AsBigFloat()
	if n.IsInt() {
		return n.Text('f', 0)
	}
	return n.Text('g', 10)
}

func trimFloat(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

func itoa(i int) string { return strconv.Itoa(i) }

func capital(s string) string {
	for i, r := range s {
		return string(unicode.ToUpper(r)) + s[i+len(string(r)):]
	}
	return s
}
