package figure

import (
	"fmt"
	"math"
	"strings"

	"wirelab/emul/hist"
	"wirelab/results"
)

// Distribution is one line of a cumulative plot: a histogram whose values are
// in nanounits of the axis (ns for seconds), as results.Record holds it.
type Distribution struct {
	Label string
	Hist  *hist.Histogram
}

// nano converts the histograms' integers to base units.
const nano = 1e-9

// CDF draws the share of values at or below each value, from the smallest to
// the 99.9th percentile, so that one outlier does not flatten the rest; the
// largest values stand in the labels' tooltips and in tables.
func CDF(fig Figure, unit string, lines []Distribution) []byte {
	c := &canvas{}
	title := titleOf(fig)
	c.text(0, 18, "tt", "start", title)
	var kept []Distribution
	for _, l := range lines {
		if l.Hist != nil && l.Hist.Count() > 0 {
			kept = append(kept, l)
		}
	}
	if len(kept) == 0 {
		c.text(0, 46, "s", "start", "No valid run has recorded values.")
		return c.document(identifier("cdf", fig.Name), title, title+": no values.", figureWidth, 60)
	}
	left := max(0, len(kept)-maxSeries)
	kept = kept[:len(kept)-left]
	lo, hi, n := math.Inf(1), math.Inf(-1), uint64(0)
	for _, l := range kept {
		lo = min(lo, float64(l.Hist.Min())*nano)
		hi = max(hi, float64(l.Hist.Quantile(0.999))*nano)
		n += l.Hist.Count()
	}
	note := fmt.Sprintf("n = %d values of all valid repetitions.", n)
	if left > 0 {
		note += fmt.Sprintf(" %d more lines are not drawn.", left)
	}
	c.text(0, 37, "s", "start", note)
	bottom := drawCDF(c, fig, unit, kept, lo, hi)
	return c.document(identifier("cdf", fig.Name), title, describeCDF(title, unit, kept), figureWidth, bottom)
}

func drawCDF(c *canvas, fig Figure, unit string, lines []Distribution, lo, hi float64) float64 {
	p := panel{
		x: valueAxis(plainName(fig.X), unit, lo, hi, fig.LogX, false, 7),
		y: valueAxis("share of values at or below", "1", 0, 1, false, true, 4),
	}
	labels := make([]string, len(lines))
	for i, l := range lines {
		labels[i] = l.Label
	}
	const height = 220.0
	left := p.leftRoom()
	p.place(left, 80, figureWidth-left-16, height)
	p.frame(c)
	for i, l := range lines {
		c.tooltip(quantileText(l, unit), func() {
			c.path(steps(&p, l.Hist), "ln "+strokeClass(i)+" "+dashClass(i))
		})
	}
	bottom := 80 + height + 40
	if len(lines) > 1 || lines[0].Label != "" {
		bottom = legend(c, labels, left, bottom)
	}
	return bottom + 8
}

// steps is the path of a cumulative histogram within the axis.
func steps(p *panel, h *hist.Histogram) string {
	var d strings.Builder
	d.WriteString("M" + coord(p.x.at(max(float64(h.Min())*nano, p.x.min))) + " " + coord(p.y.at(0)))
	var seen uint64
	lastX := math.Inf(-1)
	for _, b := range h.Buckets() {
		seen += b.Count
		v := min(float64(b.High), float64(h.Max())) * nano
		if v > p.x.max {
			break
		}
		if v < p.x.min {
			continue
		}
		// Points closer than half a unit change nothing that can be seen.
		if x := p.x.at(v); x-lastX >= 0.5 || seen == h.Count() {
			d.WriteString("L" + coord(x) + " " + coord(p.y.at(float64(seen)/float64(h.Count()))))
			lastX = x
		}
	}
	return d.String()
}

func quantileText(l Distribution, unit string) string {
	var parts []string
	for _, q := range []float64{0.5, 0.9, 0.99, 0.999} {
		parts = append(parts, fmt.Sprintf("p%s %s", strings.TrimSuffix(fmt.Sprintf("%.1f", q*100), ".0"), results.FormatValue(float64(l.Hist.Quantile(q))*nano, unit)))
	}
	return strings.TrimSpace(l.Label + " " + strings.Join(parts, ", "))
}

func describeCDF(title, unit string, lines []Distribution) string {
	var b strings.Builder
	b.WriteString(title + ".")
	for _, l := range lines {
		b.WriteString(" " + quantileText(l, unit) + ".")
	}
	return b.String()
}
