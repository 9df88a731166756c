package lang

import (
	"math"
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// numbers flattens arguments into numbers: each a number, or a list of them.
func numbers(args []cty.Value) ([]float64, error) {
	var out []float64
	for i, a := range args {
		values, err := numbersOf(a)
		if err != nil {
			return nil, function.NewArgError(i, err)
		}
		out = append(out, values...)
	}
	return out, nil
}

type numberError string

func (e numberError) Error() string { return string(e) }

// numbersOf returns the numbers of a value: one, or those of a list, however
// deep. True counts as 1 and false as 0.
func numbersOf(v cty.Value) ([]float64, error) {
	t := v.Type()
	switch {
	case v.IsNull():
		return nil, numberError("a value is null")
	case t == cty.Number:
		f, _ := v.AsBigFloat().Float64()
		return []float64{f}, nil
	case t == cty.Bool:
		if v.True() {
			return []float64{1}, nil
		}
		return []float64{0}, nil
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		var out []float64
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			values, err := numbersOf(e)
			if err != nil {
				return nil, err
			}
			out = append(out, values...)
		}
		return out, nil
	}
	return nil, numberError("numbers are wanted, not " + friendly(t))
}

// listFunc makes a function over numbers or lists of numbers.
func listFunc(compute func([]float64) (float64, error)) function.Function {
	return function.New(&function.Spec{
		VarParam: &function.Parameter{Name: "values", Type: cty.DynamicPseudoType},
		Type:     numberList,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			values, err := numbers(args)
			if err != nil {
				return cty.NilVal, err
			}
			return finite(compute(values))
		},
	})
}

// numberList checks the types of arguments before their values are known.
func numberList(args []cty.Value) (cty.Type, error) {
	if len(args) == 0 {
		return cty.Number, numberError("at least one value is needed")
	}
	for i, a := range args {
		if !holdsNumbers(a.Type()) {
			return cty.Number, function.NewArgErrorf(i, "numbers are wanted, not %s", friendly(a.Type()))
		}
	}
	return cty.Number, nil
}

func holdsNumbers(t cty.Type) bool {
	switch {
	case t == cty.Number || t == cty.Bool || t == cty.DynamicPseudoType:
		return true
	case t.IsListType() || t.IsSetType():
		return holdsNumbers(t.ElementType())
	case t.IsTupleType():
		return !slices.ContainsFunc(t.TupleElementTypes(), func(e cty.Type) bool { return !holdsNumbers(e) })
	}
	return false
}

// finite turns a result into a value; the language has no NaN.
func finite(f float64, err error) (cty.Value, error) {
	if err != nil {
		return cty.NilVal, err
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return cty.NilVal, numberError("the result is not a finite number")
	}
	return cty.NumberFloatVal(f), nil
}

const errEmpty = numberError("there is no value")

func sum(v []float64) (float64, error) {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s, nil
}

func mean(v []float64) (float64, error) {
	if len(v) == 0 {
		return 0, errEmpty
	}
	s, _ := sum(v)
	return s / float64(len(v)), nil
}

func minimum(v []float64) (float64, error) {
	if len(v) == 0 {
		return 0, errEmpty
	}
	return slices.Min(v), nil
}

func maximum(v []float64) (float64, error) {
	if len(v) == 0 {
		return 0, errEmpty
	}
	return slices.Max(v), nil
}

func median(v []float64) (float64, error) { return quantile(v, 0.5) }

// quantile interpolates linearly between the order statistics (type 7 of
// Hyndman and Fan, 1996).
func quantile(v []float64, q float64) (float64, error) {
	if len(v) == 0 {
		return 0, errEmpty
	}
	if q < 0 || q > 1 || math.IsNaN(q) {
		return 0, numberError("the share must be between 0 and 1")
	}
	s := slices.Sorted(slices.Values(v))
	h := q * float64(len(s)-1)
	i := int(h)
	if i+1 >= len(s) {
		return s[len(s)-1], nil
	}
	return s[i] + (h-float64(i))*(s[i+1]-s[i]), nil
}

// jain is (sum x)² / (n · sum x²).
func jain(v []float64) (float64, error) {
	if len(v) == 0 {
		return 0, errEmpty
	}
	s, squares := 0.0, 0.0
	for _, x := range v {
		s += x
		squares += x * x
	}
	if squares == 0 {
		return 0, numberError("all values are zero: nothing is shared")
	}
	return s * s / (float64(len(v)) * squares), nil
}

var quantileFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "values", Type: cty.DynamicPseudoType}, {Name: "q", Type: cty.Number}},
	Type:   func(args []cty.Value) (cty.Type, error) { return numberList(args[:1]) },
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		values, err := numbers(args[:1])
		if err != nil {
			return cty.NilVal, err
		}
		q, _ := args[1].AsBigFloat().Float64()
		return finite(quantile(values, q))
	},
})

var countFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "values", Type: cty.DynamicPseudoType}},
	Type:   func(args []cty.Value) (cty.Type, error) { return numberList(args) },
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		n, err := countOf(args[0])
		if err != nil {
			return cty.NilVal, err
		}
		return cty.NumberFloatVal(n), nil
	},
})

// countOf counts values, of booleans the true ones.
func countOf(v cty.Value) (float64, error) {
	t := v.Type()
	switch {
	case v.IsNull():
		return 0, nil
	case t == cty.Bool:
		if v.True() {
			return 1, nil
		}
		return 0, nil
	case t == cty.Number:
		return 1, nil
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		n := 0.0
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			x, err := countOf(e)
			if err != nil {
				return 0, err
			}
			n += x
		}
		return n, nil
	}
	return 0, numberError("numbers or true and false are wanted, not " + friendly(t))
}

// boolFunc makes alltrue or anytrue over a list.
func boolFunc(all bool) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if !args[0].IsWhollyKnown() {
				return cty.UnknownVal(cty.Bool), nil
			}
			for it := args[0].ElementIterator(); it.Next(); {
				_, e := it.Element()
				if e.IsNull() {
					return cty.NilVal, numberError("a value is null")
				}
				if e.True() != all {
					return cty.BoolVal(!all), nil
				}
			}
			return cty.BoolVal(all), nil
		},
	})
}
