package lang

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"wirelab/results/figure"
)

var figureKinds = []string{"line", "time"}

// figure decodes a figure block.
func (l *loader) figure(ctx *hcl.EvalContext, b *hcl.Block) {
	x := figureBlock{}
	d := newDecoder(l.files, ctx)
	d.block(&hcl.Block{Type: b.Type, Body: b.Body, DefRange: b.DefRange}, &x)
	at := func(name string) hcl.Range { return d.where([]string{name}) }
	if !slices.Contains(figureKinds, x.Kind) && x.Kind != "" {
		d.diags = append(d.diags, fault(at("kind"), "Unknown figure kind "+x.Kind, "%s", remedy(x.Kind, "kinds", figureKinds)))
	}
	for _, y := range x.Y {
		d.diags = append(d.diags, l.figurePath(y, x.Kind, at("y"))...)
	}
	if len(x.Y) == 0 && len(d.diags) == 0 {
		d.diags = append(d.diags, fault(at("y"), "Figure without metrics", "y lists at least one metric: y = [\"cubic.goodput_bps\"]."))
	}
	d.diags = append(d.diags, l.figureAxes(&x, at)...)
	if x.Title == "" {
		x.Title = b.Labels[0]
	}
	l.sink.add(d.diags...)
	l.result.Figures = append(l.result.Figures, figure.Figure{
		Name: b.Labels[0], Title: x.Title, Kind: x.Kind, X: x.X, Y: x.Y, By: x.By, LogX: x.LogX, LogY: x.LogY,
	})
}

// figurePath checks one metric of y. A time figure draws series, which are
// finer than metrics; links and instruments do not declare theirs, so that only
// the name before the dot is checked.
func (l *loader) figurePath(y, kind string, at hcl.Range) hcl.Diagnostics {
	path := strings.Split(strings.TrimPrefix(y, "result."), ".")
	if kind == "time" {
		if known := l.seriesOf(path[0]); known != nil && !slices.Contains(known, path[len(path)-1]) {
			return hcl.Diagnostics{fault(at, "Unknown series "+y, "%s", remedy(path[len(path)-1], "series of "+path[0], known))}
		}
		path = path[:1]
	}
	step, what, known, ok := l.scope.wrong(path)
	if !ok {
		return hcl.Diagnostics{fault(at, "Unknown metric "+y, "%s", remedy(path[step], what, known))}
	}
	if kind == "line" && len(path) < 2 {
		return hcl.Diagnostics{fault(at, "Unknown metric "+y, "Write the metric after the name: \"%s.METRIC\".", y)}
	}
	return nil
}

// seriesOf lists the time series of a workload; nil where they are not known.
func (l *loader) seriesOf(name string) []string {
	n := l.scope.names[name]
	if n == nil {
		return nil
	}
	var out []string
	for _, k := range l.opts.Kinds.Workloads {
		if k.Name != n.kind {
			continue
		}
		for _, m := range k.Series {
			out = append(out, m.Name)
		}
	}
	return out
}

// figureAxes checks x and by against the sweep.
func (l *loader) figureAxes(x *figureBlock, at func(string) hcl.Range) hcl.Diagnostics {
	var diags hcl.Diagnostics
	names := l.sweepNames()
	if x.Kind == "line" && x.X == "" && len(names) == 1 {
		x.X = names[0]
	}
	if x.Kind == "line" && x.X == "" {
		diags = append(diags, fault(at(""), "Missing attribute x", "A line figure draws metrics against a sweep variable; kind = \"time\" draws series. %s", remedy("", "sweep variables", names)))
	}
	for name, v := range map[string]string{"x": x.X, "by": x.By} {
		if v != "" && !slices.Contains(names, v) && x.Kind == "line" {
			diags = append(diags, fault(at(name), "Unknown sweep variable "+v, "%s", remedy(v, "sweep variables", names)))
		}
	}
	if x.By != "" && x.By == x.X {
		diags = append(diags, fault(at("by"), "Same variable twice", "by splits lines by another sweep variable than x."))
	}
	return diags
}
