package lang

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"wirelab/results"
)

// maxPoints is the size of a sweep that is not even walked through.
const maxPoints = 2_000_000

// sweepVariable is one line of the sweep block.
type sweepVariable struct {
	name   string
	at     hcl.Range
	expr   hcl.Expression
	values []cty.Value
	labels []string // of the values, in point IDs
}

// point is one combination, before evaluation.
type point struct {
	results.Point
	values map[string]cty.Value
}

// nameSweep reads the names of the sweep, in the order of the file.
func (l *loader) nameSweep() {
	l.sweepKnown = true
	if l.doc.sweep == nil {
		return
	}
	for _, b := range l.doc.sweep.Body.Blocks {
		l.sink.add(fault(b.DefRange(), "Block in sweep", "sweep has name = [ … ] lines only; exclude stands beside it."))
	}
	for _, a := range sortedAttributes(l.doc.sweep.Body.Attributes) {
		l.sweep = append(l.sweep, sweepVariable{name: a.Name, at: a.NameRange, expr: a.Expr})
	}
}

func (l *loader) sweepNames() []string {
	var out []string
	for _, v := range l.sweep {
		out = append(out, v.name)
	}
	return out
}

// expand evaluates the sweep and makes its points. It returns false where the
// sweep is wrong or too large.
func (l *loader) expand() ([]point, bool) {
	ctx := l.steadyContext()
	ok := true
	for i := range l.sweep {
		l.sweep[i].values = l.sweepValues(&l.sweep[i], l.value(l.sweep[i].expr, ctx))
	}
	l.smokeSweep(ctx)
	for i, v := range l.sweep {
		l.sweep[i].labels = labels(v.values)
		ok = ok && len(v.values) > 0
		l.result.SweepNames = append(l.result.SweepNames, v.name)
	}
	if ok {
		l.files.size = l.sweepSize()
		l.narrow()
	}
	if !ok || !l.checkSize() {
		return nil, false
	}
	return l.pick(ctx)
}

// sweepValues checks the values of one sweep variable; nil where they are
// wrong.
func (l *loader) sweepValues(v *sweepVariable, list cty.Value) []cty.Value {
	if !list.IsWhollyKnown() {
		return nil
	}
	at := v.expr.Range()
	if t := list.Type(); list.IsNull() || !t.IsListType() && !t.IsTupleType() && !t.IsSetType() {
		l.sink.add(fault(at, "Wrong type of sweep."+v.name, "It must be a list of values: [0.5, 1, 2]."))
		return nil
	}
	if list.LengthInt() == 0 {
		l.sink.add(fault(at, "Empty sweep."+v.name, "A sweep variable without values leaves no point. Remove the line, or give it values."))
		return nil
	}
	var out []cty.Value
	seen := map[string]bool{}
	for it := list.ElementIterator(); it.Next(); {
		_, e := it.Element()
		if e.IsNull() || e.Type() != cty.Number && e.Type() != cty.String && e.Type() != cty.Bool {
			l.sink.add(fault(at, "Wrong type of sweep."+v.name, "Its values must be text, numbers, true or false; value %d is %s.", len(out)+1, describe(e)))
			return nil
		}
		if text := textOf(e); seen[text] {
			l.sink.add(fault(at, "Repeated value in sweep."+v.name, "%q stands twice: two points would have one name. Repeat runs with repetitions.", text))
			return nil
		}
		seen[textOf(e)] = true
		out = append(out, e)
	}
	return out
}

func describe(v cty.Value) string {
	if v.IsNull() {
		return "null"
	}
	return friendly(v.Type())
}

// smokeSweep replaces the values of sweep variables that smoke names.
func (l *loader) smokeSweep(ctx *hcl.EvalContext) {
	if l.smoke == nil || l.smoke.Sweep == nil {
		return
	}
	l.eachItem(l.smoke.Sweep, ctx, "sweep", func(name string, at hcl.Range, value cty.Value) {
		i := slices.IndexFunc(l.sweep, func(v sweepVariable) bool { return v.name == name })
		if i < 0 {
			l.sink.add(fault(at, "Unknown reference sweep."+name, "%s", remedy(name, "sweep variables", l.sweepNames())))
			return
		}
		v := sweepVariable{name: name, at: at, expr: hcl.StaticExpr(value, at)}
		l.sweep[i].values = l.sweepValues(&v, value)
	})
}

// sweepSize multiplies what the sweep has.
func (l *loader) sweepSize() Size {
	points := uint64(1)
	for _, v := range l.sweep {
		points = multiply(points, uint64(len(v.values)))
	}
	return Size{Points: points, Repetitions: l.settings.Repetitions, Runs: multiply(points, uint64(l.settings.Repetitions))}
}

// checkSize asks for confirmation of many runs, before a point is made.
func (l *loader) checkSize() bool {
	size := l.sweepSize()
	var factors []string
	for _, v := range l.sweep {
		factors = append(factors, fmt.Sprintf("%s has %d", v.name, len(v.values)))
	}
	limit := l.opts.MaxRuns
	if limit == 0 {
		limit = DefaultMaxRuns
	}
	at := l.doc.experiment.DefRange()
	if l.doc.sweep != nil {
		at = l.doc.sweep.DefRange()
	}
	var d *hcl.Diagnostic
	switch {
	case size.Points > maxPoints:
		count := strconv.FormatUint(size.Points, 10)
		if size.Points == math.MaxUint64 {
			count = "more than 10^19"
		}
		d = fault(at, "Sweep too large", "It has %s points (%s), more than the %d that can be planned. Split the experiment.", count, strings.Join(factors, ", "), maxPoints)
	case size.Runs > limit && !l.opts.Yes:
		d = fault(at, "Many runs", "%d points (%s) with %d repetitions are %d runs, more than %d. Give --yes to make them, --only for a part, or a shorter sweep.",
			size.Points, strings.Join(factors, ", "), size.Repetitions, size.Runs, limit)
	default:
		return true
	}
	d.Extra = code(CodeTooManyRuns)
	l.sink.add(d)
	return false
}

func multiply(a, b uint64) uint64 {
	if b != 0 && a > math.MaxUint64/b {
		return math.MaxUint64
	}
	return a * b
}

// pick walks the cross product, the last variable fastest, and keeps what no
// exclude block takes out and --only names.
func (l *loader) pick(ctx *hcl.EvalContext) ([]point, bool) {
	excludes := l.decodeExcludes()
	index := make([]int, len(l.sweep))
	var out []point
	for {
		p := l.point(index)
		if l.wanted(p) && !l.excluded(ctx, excludes, p) {
			out = append(out, p)
		}
		i := len(index) - 1
		for ; i >= 0; i-- {
			if index[i]++; index[i] < len(l.sweep[i].values) {
				break
			}
			index[i] = 0
		}
		if i < 0 {
			break
		}
	}
	l.sink.point = ""
	if len(out) == 0 && !l.sink.hasErrors() {
		l.tellNoPoint()
	}
	return out, len(out) > 0
}

func (l *loader) tellNoPoint() {
	if l.opts.Only != "" {
		first := l.point(make([]int, len(l.sweep)))
		l.sink.add(globalFault("No point "+l.opts.Only, "--only takes a point's name or some of its values; the first point is %s. plan lists them all.", first.ID))
		return
	}
	l.sink.add(fault(l.doc.excludes[0].DefRange(), "No point left", "The exclude blocks take out every point of the sweep."))
}

func (l *loader) decodeExcludes() []hcl.Expression {
	var out []hcl.Expression
	for _, b := range l.doc.excludes {
		var x excludeBlock
		l.decode(b, l.base, &x)
		if x.When != nil {
			out = append(out, x.When)
		}
	}
	return out
}

// point makes the combination at the given indices.
func (l *loader) point(index []int) point {
	p := point{values: make(map[string]cty.Value, len(index))}
	var parts []string
	for i, v := range l.sweep {
		value := v.values[index[i]]
		p.values[v.name] = value
		s := results.SweepValue{Name: v.name, Text: textOf(value)}
		if value.Type() == cty.Number {
			f, _ := value.AsBigFloat().Float64()
			s.Number = &f
		}
		p.Sweep = append(p.Sweep, s)
		parts = append(parts, v.name+"="+v.labels[index[i]])
	}
	p.ID = shortened(strings.Join(parts, ","))
	if len(parts) == 0 {
		p.ID = "all"
	}
	return p
}

// safe keeps what may stand in a file's name on any system.
func safe(text string) string {
	if text == "" {
		return "_"
	}
	text = strings.ReplaceAll(text, "%", "pct")
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune(".+-_", r) {
			return r
		}
		return '_'
	}, text)
}

// labels name the values of a sweep variable inside point IDs. Values that are
// the same once unsafe characters are replaced (or, on some file systems, but
// for capitals) are told apart by a hash.
func labels(values []cty.Value) []string {
	out := make([]string, len(values))
	taken := map[string]bool{}
	for i, v := range values {
		text := textOf(v)
		out[i] = safe(text)
		if taken[strings.ToLower(out[i])] {
			out[i] += "-" + shortHash(text)
		}
		taken[strings.ToLower(out[i])] = true
	}
	return out
}

func shortHash(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:4])
}

// maxID is the longest point ID; run directories add to it, and file names
// have at most 255 bytes.
const maxID = 120

// shortened cuts an ID that is too long, and keeps it unique by a hash.
func shortened(id string) string {
	if len(id) <= maxID {
		return id
	}
	return id[:maxID-9] + "-" + shortHash(id)
}

// narrow leaves out the values that --only cannot mean, so that a part of a
// large sweep is planned without walking through all of it.
func (l *loader) narrow() {
	if l.opts.Only == "" {
		return
	}
	for i := range l.sweep {
		v := &l.sweep[i]
		var values []cty.Value
		var kept []string
		for n, label := range v.labels {
			if slices.Contains(strings.Split(l.opts.Only, ","), v.name+"="+label) {
				values, kept = append(values, v.values[n]), append(kept, label)
			}
		}
		if len(values) > 0 {
			v.values, v.labels = values, kept
		}
	}
}

// wanted applies --only: the whole ID, or all of the values named.
func (l *loader) wanted(p point) bool {
	if l.opts.Only == "" || l.opts.Only == p.ID {
		return true
	}
	parts := strings.Split(p.ID, ",")
	for _, want := range strings.Split(l.opts.Only, ",") {
		if !slices.Contains(parts, strings.TrimSpace(want)) {
			return false
		}
	}
	return true
}

func (l *loader) excluded(ctx *hcl.EvalContext, when []hcl.Expression, p point) bool {
	if len(when) == 0 {
		return false
	}
	l.sink.point = p.ID
	scope := l.pointContext(ctx, p, nil)
	for _, e := range when {
		if b := l.boolean(e, scope, "when"); b != nil && *b {
			return true
		}
	}
	return false
}

// textOf writes a value as the language would show it.
func textOf(v cty.Value) string {
	if v.IsNull() {
		return "null"
	}
	if v.Type() == cty.Number {
		return numberText(v)
	}
	if s, err := convert.Convert(v, cty.String); err == nil {
		return s.AsString()
	}
	plain, err := plainValue(v)
	if err != nil {
		return friendly(v.Type())
	}
	return jsonText(plain)
}
