package command

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/theory/jsonpath"

	"wirelab/emul/attr"
	"wirelab/results"
	"wirelab/workloads/lenient"
)

// Capture finds a number in a program's output.
type Capture struct {
	Name   string  `hcl:"name,label" doc:"The metric's name, its unit last: goodput_bps, latency_p99_s."`
	Regex  string  `hcl:"regex,optional" doc:"Regular expression (RE2); the number is its first group, or all of it without one. Matched line by line, it also gives a time series."`
	JSON   string  `hcl:"json,optional" doc:"JSONPath (RFC 9535) into the output, read as JSON."`
	Unit   string  `hcl:"unit" doc:"Unit of the metric, in base SI: \"bit/s\", \"s\", \"bytes\", \"1\"."`
	Scale  float64 `hcl:"scale,optional" default:"1" doc:"The number is multiplied by this, for example 1e6 when the program prints Mbit/s."`
	From   string  `hcl:"from,optional" default:"stdout" doc:"\"stdout\", \"stderr\" or \"file:PATH\"."`
	Select string  `hcl:"select,optional" default:"last" doc:"Which of several numbers: \"first\", \"last\", \"min\", \"max\", \"mean\" or \"sum\"."`
}

var metricName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

const filePrefix = "file:"

func (k *Capture) scale() float64 {
	if k.Scale == 0 {
		return 1
	}
	return k.Scale
}

func (k *Capture) source() string {
	if k.From == "" {
		return "stdout"
	}
	return k.From
}

func (k *Capture) validate(actor bool) []attr.Problem {
	var out []attr.Problem
	bad := func(path, summary, format string, args ...any) {
		out = append(out, attr.At(path, summary, format, args...))
	}
	if !metricName.MatchString(k.Name) {
		bad("", "no name of a metric", "names are lower case with underscores, the unit last, as in goodput_bps")
	}
	if k.Unit == "" {
		bad("unit", "no unit", `write the metric's unit, "1" for a count or ratio`)
	}
	switch {
	case actor && (k.Regex != "" || k.JSON != ""):
		bad("", "a capture in an actor's output", "an actor says its values in its summary: leave regex and json out")
	case !actor && (k.Regex == "") == (k.JSON == ""):
		bad("", "one way to find the number", `give either "regex" or "json"`)
	}
	if _, err := regexp.Compile(k.Regex); err != nil {
		bad("regex", "no regular expression", "%v", err)
	}
	if k.JSON != "" {
		if _, err := jsonpath.Parse(k.JSON); err != nil {
			bad("json", "no JSONPath", "%v; a path looks like $.end.sum_received.bits_per_second", err)
		}
	}
	if math.IsNaN(k.Scale) || math.IsInf(k.Scale, 0) {
		bad("scale", "no finite number", "leave it out for 1")
	}
	if s := k.source(); s != "stdout" && s != "stderr" && (!strings.HasPrefix(s, filePrefix) || s == filePrefix) {
		bad("from", "unknown output", `write "stdout", "stderr" or "file:PATH"`)
	}
	if _, ok := selections[k.Select]; !ok {
		bad("select", "unknown selection", `write "first", "last", "min", "max", "mean" or "sum"`)
	}
	return out
}

func (k *Capture) metric(argv []string) results.MetricDef {
	how := "said by the program"
	switch {
	case k.Regex != "":
		how = fmt.Sprintf("regular expression %s on %s", k.Regex, k.source())
	case k.JSON != "":
		how = fmt.Sprintf("JSONPath %s on %s", k.JSON, k.source())
	}
	if k.scale() != 1 {
		how += fmt.Sprintf(", times %g", k.scale())
	}
	program := ""
	if len(argv) > 0 {
		program = argv[0]
	}
	return results.MetricDef{Name: k.Name, Unit: k.Unit, Source: program, Definition: "What the program printed: " + how + ".",
		PerFlow: how == "said by the program"}
}

// selections join several numbers (at least one) to one.
var selections = map[string]func([]float64) float64{
	"":      last,
	"last":  last,
	"first": func(v []float64) float64 { return v[0] },
	"min": func(v []float64) float64 {
		out := v[0]
		for _, x := range v {
			out = min(out, x)
		}
		return out
	},
	"max": func(v []float64) float64 {
		out := v[0]
		for _, x := range v {
			out = max(out, x)
		}
		return out
	},
	"mean": func(v []float64) float64 { return sum(v) / float64(len(v)) },
	"sum":  sum,
}

func last(v []float64) float64 { return v[len(v)-1] }

func sum(v []float64) float64 {
	var out float64
	for _, x := range v {
		out += x
	}
	return out
}

// find returns the number that text holds; ok is false when there is none that
// is finite. Nothing but a number in the text becomes one.
func (k *Capture) find(text []byte) (value float64, ok bool, why string) {
	var found []float64
	if k.JSON != "" {
		found, why = k.findJSON(text)
	} else {
		found, why = k.findRegex(text)
	}
	if len(found) == 0 {
		return 0, false, why
	}
	v := selections[k.Select](found) * k.scale()
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false, "no finite number"
	}
	return v, true, ""
}

func (k *Capture) findRegex(text []byte) ([]float64, string) {
	re, err := regexp.Compile(k.Regex)
	if err != nil {
		return nil, err.Error()
	}
	var out []float64
	bad := ""
	for _, m := range re.FindAllSubmatch(text, -1) {
		if v, ok := number(string(m[min(1, len(m)-1)])); ok {
			out = append(out, v)
		} else {
			bad = fmt.Sprintf("%.40q is no finite number", m[min(1, len(m)-1)])
		}
	}
	if len(out) == 0 && bad == "" {
		bad = "nothing matches"
	}
	return out, bad
}

func (k *Capture) findJSON(text []byte) ([]float64, string) {
	path, err := jsonpath.Parse(k.JSON)
	if err != nil {
		return nil, err.Error()
	}
	documents, _, err := lenient.Decode(text)
	if err != nil {
		return nil, err.Error()
	}
	var out []float64
	why := "the path leads to nothing"
	for _, d := range documents {
		for _, node := range path.Select(d) {
			switch v := node.(type) {
			case float64:
				out = append(out, v)
			case string:
				if f, ok := number(v); ok {
					out = append(out, f)
				} else {
					why = fmt.Sprintf("%.40q is no finite number", v)
				}
			case nil:
				why = "the value is no finite number"
			default:
				why = fmt.Sprintf("the path leads to a %T, not to a number", v)
			}
		}
	}
	return out, why
}

// number reads a decimal number; thousands commas are not guessed at.
func number(text string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}
