package lang

import (
	"fmt"
	"math/big"
	"time"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"wirelab/emul/unit"
)

// functionDoc is one function of the language.
type functionDoc struct {
	name, call, doc string
	fn              function.Function
}

// functions are everything that an expression may call, but the aggregates of
// claims.
var functions = []functionDoc{
	{"bdp", "bdp(rate, rtt, n)", "n bandwidth-delay products as a size, at least two full packets: \"500000B\". n is 1 unless given.", bdpFunc},
	{"rate", "rate(text)", "Bit/s as a number: rate(\"100mbit\") is 100000000.", quantityFunc("text", func(s string) (float64, error) {
		r, err := unit.ParseRate(s)
		return float64(r), err
	})},
	{"seconds", "seconds(text)", "Seconds as a number: seconds(\"40ms\") is 0.04.", quantityFunc("text", func(s string) (float64, error) {
		d, err := unit.ParseDuration(s)
		return float64(d) / float64(time.Second), err
	})},
	{"bytes", "bytes(text)", "Bytes as a number: bytes(\"64KiB\") is 65536.", quantityFunc("text", func(s string) (float64, error) {
		b, err := unit.ParseSize(s)
		return float64(b), err
	})},
	{"jain", "jain(list)", "Jain's fairness index of the values (RFC 5166, section 2.3): 1 is equal shares, 1/n is all for one.", listFunc(jain)},
	{"sum", "sum(list)", "Sum of the values.", listFunc(sum)},
	{"ratio", "ratio(a, b)", "a divided by b; an error that says so where b is zero.", ratioFunc},
	{"mean", "mean(list)", "Arithmetic mean of the values.", listFunc(mean)},
	{"median", "median(list)", "Middle value, or the mean of the two in the middle.", listFunc(median)},
	{"min", "min(a, b, …) or min(list)", "Smallest value.", listFunc(minimum)},
	{"max", "max(a, b, …) or max(list)", "Largest value.", listFunc(maximum)},
	{"quantile", "quantile(list, q)", "Value below which the share q of the values lies, interpolated between neighbours.", quantileFunc},
	{"alltrue", "alltrue(list)", "Whether every element is true.", boolFunc(true)},
	{"anytrue", "anytrue(list)", "Whether an element is true.", boolFunc(false)},
	{"count", "count(list)", "Number of values; of true ones where they are true or false.", countFunc},

	{"abs", "abs(x)", "Absolute value.", stdlib.AbsoluteFunc},
	{"ceil", "ceil(x)", "Rounded up.", stdlib.CeilFunc},
	{"floor", "floor(x)", "Rounded down.", stdlib.FloorFunc},
	{"log", "log(x, base)", "Logarithm.", stdlib.LogFunc},
	{"pow", "pow(x, y)", "x to the power of y.", stdlib.PowFunc},
	{"signum", "signum(x)", "-1, 0 or 1.", stdlib.SignumFunc},
	{"parseint", "parseint(text, base)", "Whole number written in the base.", stdlib.ParseIntFunc},
	{"range", "range(limit) or range(start, limit, step)", "List of numbers, the limit left out.", stdlib.RangeFunc},

	{"chunklist", "chunklist(list, size)", "List of lists of at most size elements.", stdlib.ChunklistFunc},
	{"coalesce", "coalesce(a, b, …)", "First argument that is not null.", stdlib.CoalesceFunc},
	{"coalescelist", "coalescelist(a, b, …)", "First list that is not empty.", stdlib.CoalesceListFunc},
	{"compact", "compact(list)", "List without empty texts.", stdlib.CompactFunc},
	{"concat", "concat(a, b, …)", "Lists joined.", stdlib.ConcatFunc},
	{"contains", "contains(list, x)", "Whether the list has the element.", stdlib.ContainsFunc},
	{"distinct", "distinct(list)", "List without repeated elements.", stdlib.DistinctFunc},
	{"element", "element(list, i)", "Element i, counted round from the start.", stdlib.ElementFunc},
	{"flatten", "flatten(list)", "Lists inside the list replaced by their elements.", stdlib.FlattenFunc},
	{"index", "index(list, i)", "Element i.", stdlib.IndexFunc},
	{"keys", "keys(map)", "Sorted keys.", stdlib.KeysFunc},
	{"length", "length(x)", "Number of elements, or of characters of a text.", lengthFunc},
	{"lookup", "lookup(map, key, default)", "Value of the key, or the default.", stdlib.LookupFunc},
	{"merge", "merge(a, b, …)", "Maps joined; later ones win.", stdlib.MergeFunc},
	{"reverse", "reverse(list)", "List backwards.", stdlib.ReverseListFunc},
	{"setproduct", "setproduct(a, b, …)", "Every combination of elements.", stdlib.SetProductFunc},
	{"slice", "slice(list, from, to)", "Elements from (included) to (left out).", stdlib.SliceFunc},
	{"sort", "sort(list)", "Texts in order.", stdlib.SortFunc},
	{"values", "values(map)", "Values in the order of their keys.", stdlib.ValuesFunc},
	{"zipmap", "zipmap(keys, values)", "Map of two lists.", stdlib.ZipmapFunc},

	{"chomp", "chomp(text)", "Text without newlines at its end.", stdlib.ChompFunc},
	{"format", "format(spec, x, …)", "Text in printf's manner: format(\"%.2f\", x).", stdlib.FormatFunc},
	{"formatlist", "formatlist(spec, list, …)", "format for every element.", stdlib.FormatListFunc},
	{"indent", "indent(n, text)", "Lines but the first moved right.", stdlib.IndentFunc},
	{"join", "join(separator, list)", "Texts joined.", stdlib.JoinFunc},
	{"jsondecode", "jsondecode(text)", "Value of a JSON text.", stdlib.JSONDecodeFunc},
	{"jsonencode", "jsonencode(x)", "JSON text of a value.", stdlib.JSONEncodeFunc},
	{"lower", "lower(text)", "Small letters.", stdlib.LowerFunc},
	{"regex", "regex(pattern, text)", "First match, or its groups.", stdlib.RegexFunc},
	{"regexall", "regexall(pattern, text)", "All matches.", stdlib.RegexAllFunc},
	{"regexreplace", "regexreplace(text, pattern, by)", "Matches replaced.", stdlib.RegexReplaceFunc},
	{"replace", "replace(text, part, by)", "Parts replaced.", stdlib.ReplaceFunc},
	{"split", "split(separator, text)", "Parts of a text.", stdlib.SplitFunc},
	{"strlen", "strlen(text)", "Number of characters.", stdlib.StrlenFunc},
	{"substr", "substr(text, offset, length)", "Part of a text.", stdlib.SubstrFunc},
	{"title", "title(text)", "First letters capital.", stdlib.TitleFunc},
	{"trim", "trim(text, characters)", "Characters removed at both ends.", stdlib.TrimFunc},
	{"trimprefix", "trimprefix(text, prefix)", "Prefix removed.", stdlib.TrimPrefixFunc},
	{"trimspace", "trimspace(text)", "Spaces removed at both ends.", stdlib.TrimSpaceFunc},
	{"trimsuffix", "trimsuffix(text, suffix)", "Suffix removed.", stdlib.TrimSuffixFunc},
	{"upper", "upper(text)", "Capital letters.", stdlib.UpperFunc},

	{"can", "can(x)", "Whether the expression has a value.", tryfunc.CanFunc},
	{"try", "try(a, b, …)", "First expression that has a value.", tryfunc.TryFunc},
	{"tobool", "tobool(x)", "As true or false.", stdlib.MakeToFunc(cty.Bool)},
	{"tonumber", "tonumber(x)", "As a number.", stdlib.MakeToFunc(cty.Number)},
	{"tostring", "tostring(x)", "As a text.", stdlib.MakeToFunc(cty.String)},
	{"tolist", "tolist(x)", "As a list.", stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType))},
	{"toset", "toset(x)", "As a set: sorted, each element once.", stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType))},
	{"tomap", "tomap(x)", "As a map.", stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType))},
}

// functionMap returns the functions by name.
func functionMap() map[string]function.Function {
	m := make(map[string]function.Function, len(functions))
	for _, f := range functions {
		m[f.name] = f.fn
	}
	return m
}

func (l *loader) functionNames() map[string]function.Function { return l.base.Functions }

var bdpFunc = function.New(&function.Spec{
	Params:   []function.Parameter{{Name: "rate", Type: cty.String}, {Name: "rtt", Type: cty.String}},
	VarParam: &function.Parameter{Name: "n", Type: cty.Number},
	Type: func(args []cty.Value) (cty.Type, error) {
		if len(args) > 3 {
			return cty.String, function.NewArgErrorf(3, "bdp takes a rate, an RTT and a number")
		}
		return cty.String, nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		rate, err := unit.ParseRate(args[0].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgError(0, err)
		}
		rtt, err := unit.ParseDuration(args[1].AsString())
		if err != nil {
			return cty.NilVal, function.NewArgError(1, err)
		}
		n := 1.0
		if len(args) > 2 {
			n, _ = args[2].AsBigFloat().Float64()
		}
		if n < 0 || n > 1e6 {
			return cty.NilVal, function.NewArgErrorf(2, "the number of bandwidth-delay products must be between 0 and 1000000")
		}
		return cty.StringVal(fmt.Sprintf("%dB", int64(unit.BDP(rate, rtt, n, wireMTU)))), nil
	},
})

// quantityFunc makes a function from a text with a unit to a number.
func quantityFunc(param string, parse func(string) (float64, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: param, Type: cty.String}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			f, err := parse(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.NumberFloatVal(f), nil
		},
	})
}

var ratioFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "a", Type: cty.Number}, {Name: "b", Type: cty.Number}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		b := args[1].AsBigFloat()
		if b.Sign() == 0 {
			return cty.NilVal, function.NewArgErrorf(1, "the divisor is zero")
		}
		return cty.NumberVal(new(big.Float).Quo(args[0].AsBigFloat(), b)), nil
	},
})

// lengthFunc is the standard length, for texts too.
var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "x", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowUnknown: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		switch {
		case args[0].Type() == cty.DynamicPseudoType:
			return cty.UnknownVal(cty.Number), nil
		case args[0].Type() == cty.String:
			return stdlib.StrlenFunc.Call(args)
		}
		return stdlib.LengthFunc.Call(args)
	},
})
