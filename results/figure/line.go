package figure

import (
	"fmt"
	"math"
	"strings"

	"wirelab/results"
	"wirelab/results/stat"
)

// Sizes of a figure, in user units.
const (
	figureWidth = 760.0
	panelHeight = 280.0
	maxDirect   = 6 // lines that are labelled at their end
)

// Line draws metrics against a sweep variable: the median of valid repetitions
// with its 95 % interval as a band (a whisker on categories), or every
// repetition as a hollow mark where there are too few for an interval. Metrics
// of different units get a panel each. Missing cells leave a gap; without any
// cell the figure says so.
func Line(fig Figure, runs []*results.Run, defs []results.NamedMetrics) ([]byte, error) {
	table := stat.Tabulate(runs)
	c := &canvas{}
	title := titleOf(fig)
	c.text(0, 18, "tt", "start", title)
	scale := scaleOf(fig.X, table.Points)
	if fig.X != "" && len(scale.texts) == 0 && len(table.Points) > 0 {
		return nil, fmt.Errorf("draw figure %s: no sweep variable is called %q", fig.Name, fig.X)
	}
	if len(fig.Y) == 0 {
		return nil, fmt.Errorf("draw figure %s: it names no metric (y)", fig.Name)
	}
	top := 80.0
	var all []series
	left := 0
	for _, ys := range byUnit(fig.Y, func(y string) string { return UnitOf(defs, y) }) {
		lines, more := buildSeries(fig, ys, table, scale)
		left += more
		if len(lines) == 0 {
			c.text(0, top, "s", "start", "No valid run has a value of "+strings.Join(ys, ", ")+".")
			top += 30
			continue
		}
		if len(all) > 0 {
			top += 28 // the vertical axis's label
		}
		all = append(all, lines...)
		top = drawLines(c, fig, ys, lines, scale, UnitOf(defs, ys[0]), top)
	}
	note := nNote(all)
	if left > 0 {
		note += fmt.Sprintf(" %d more lines are not drawn.", left)
	}
	c.text(0, 37, "s", "start", note)
	return c.document(identifier("fig", fig.Name), title, describe(title, all, defs), figureWidth, top), nil
}

func titleOf(fig Figure) string {
	if fig.Title != "" {
		return fig.Title
	}
	return fig.Name
}

// nNote says how many repetitions stand behind each mark and what is drawn.
func nNote(lines []series) string {
	lo, hi := math.MaxInt, 0
	for _, l := range lines {
		for _, m := range l.points {
			lo, hi = min(lo, m.cell.N), max(hi, m.cell.N)
		}
	}
	n := fmt.Sprintf("n = %d", lo)
	if lo != hi {
		n = fmt.Sprintf("n = %d to %d", lo, hi)
	}
	switch {
	case hi == 0:
		return "n = 0"
	case hi == 1:
		return n + ": single values."
	case hi < stat.MinForInterval:
		return fmt.Sprintf("%s: median, and every repetition as a hollow mark (a 95 %% interval needs n ≥ %d).", n, stat.MinForInterval)
	case lo < stat.MinForInterval:
		return fmt.Sprintf("%s: median with 95 %% interval; hollow marks are repetitions where n < %d.", n, stat.MinForInterval)
	}
	return n + ": median with 95 % order-statistic interval."
}

// describe is the text for those who do not see the figure.
func describe(title string, lines []series, defs []results.NamedMetrics) string {
	var b strings.Builder
	b.WriteString(title + ".")
	for _, l := range lines {
		unit := UnitOf(defs, l.metric)
		fmt.Fprintf(&b, " %s:", l.label)
		for i, m := range l.points {
			sep := " "
			if i > 0 {
				sep = ", "
			}
			b.WriteString(sep)
			if m.text != "" {
				b.WriteString(m.text + " → ")
			}
			b.WriteString(results.FormatValue(m.cell.Median, unit))
		}
		b.WriteString(".")
	}
	return b.String()
}

// extent returns the range of all that is drawn of the lines.
func extent(lines []series) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, l := range lines {
		for _, m := range l.points {
			a, b := m.cell.Range()
			lo, hi = min(lo, a, m.cell.Median), max(hi, b, m.cell.Median)
		}
	}
	return lo, hi
}

// drawLines draws one panel and returns the bottom of its space.
func drawLines(c *canvas, fig Figure, ys []string, lines []series, scale sweepScale, unit string, top float64) float64 {
	lo, hi := extent(lines)
	p := panel{y: valueAxis(commonName(ys), unit, lo, hi, fig.LogY, true, 5)}
	left := p.leftRoom()
	direct := len(lines) <= maxDirect
	right := 12.0
	if direct {
		for _, l := range lines {
			right = max(right, min(boldWidth(l.label)+20, 240))
		}
	}
	width := figureWidth - left - right
	if fig.X != "" {
		p.x = scale.axis(fig.LogX, width)
	} else {
		p.x = categoryAxis("", []string{""})
	}
	p.place(left, top, width, panelHeight)
	p.frame(c)
	categories := fig.X == "" || !scale.numeric
	for i, l := range lines {
		drawSeries(c, &p, i, l, dodge(categories, i, len(lines), &p), unit, categories)
	}
	bottom := top + panelHeight + 40
	if direct {
		directLabels(c, &p, lines)
	} else {
		bottom = legend(c, labelsOf(lines), left, bottom)
	}
	return bottom + 12
}

func labelsOf(lines []series) []string {
	labels := make([]string, len(lines))
	for i, l := range lines {
		labels[i] = l.label
	}
	return labels
}

// dodge sets the lines of a category axis side by side.
func dodge(categories bool, i, n int, p *panel) float64 {
	if !categories || n == 1 {
		return 0
	}
	slot := math.Abs(p.x.at(1) - p.x.at(0))
	step := min(slot*0.6/float64(n), 22)
	return (float64(i) - float64(n-1)/2) * step
}

// drawSeries draws the interval, the repetitions, the line and the marks.
func drawSeries(c *canvas, p *panel, i int, l series, dx float64, unit string, categories bool) {
	c.open("c " + strokeClass(i))
	if !categories {
		for _, run := range connected(l.points) {
			if len(run) > 1 {
				c.path(band(p, run), "bd "+fillClass(i))
			}
		}
		if d := polyline(p, l.points); d != "" {
			c.path(d, "ln "+strokeClass(i)+" "+dashClass(i))
		}
	}
	for _, m := range l.points {
		x := p.x.at(m.x) + dx
		if m.cell.Interval != nil {
			low, high := p.y.at(m.cell.Interval.Low), p.y.at(m.cell.Interval.High)
			c.path(fmt.Sprintf("M%s %sV%sM%s %sh8M%s %sh8", coord(x), coord(low), coord(high), coord(x-4), coord(low), coord(x-4), coord(high)), "wk "+strokeClass(i))
		} else if m.cell.N > 1 {
			for _, v := range m.cell.Values {
				c.marker(i, x, p.y.at(v), 3, "raw "+strokeClass(i))
			}
		}
		c.tooltip(cellText(l.label, m, unit), func() { c.marker(i, x, p.y.at(m.cell.Median), 4.2, fillClass(i)) })
	}
	c.close()
}

// cellText is a mark's tooltip.
func cellText(label string, m mark, unit string) string {
	scale := results.ScaleFor(unit, m.cell.Median)
	s := label
	if m.text != "" {
		s += " at " + m.text
	}
	s += ": " + scale.Format(m.cell.Median)
	if m.cell.N > 1 {
		low, high := m.cell.Range()
		kind := "range"
		if m.cell.Interval != nil {
			kind = "95 % interval"
		}
		s += fmt.Sprintf(", %s %s to %s", kind, scale.Number(low), scale.Number(high))
	}
	return s + fmt.Sprintf(", n = %d", m.cell.N)
}

// connected returns the stretches of marks that have an interval.
func connected(points []mark) [][]mark {
	var out [][]mark
	open := false
	for _, m := range points {
		if m.cell.Interval == nil {
			open = false
			continue
		}
		if !open {
			out = append(out, nil)
			open = true
		}
		out[len(out)-1] = append(out[len(out)-1], m)
	}
	return out
}

func band(p *panel, run []mark) string {
	var d strings.Builder
	for k, m := range run {
		d.WriteString(map[bool]string{true: "M", false: "L"}[k == 0] + coord(p.x.at(m.x)) + " " + coord(p.y.at(m.cell.Interval.High)))
	}
	for k := len(run) - 1; k >= 0; k-- {
		d.WriteString("L" + coord(p.x.at(run[k].x)) + " " + coord(p.y.at(run[k].cell.Interval.Low)))
	}
	return d.String() + "Z"
}

func polyline(p *panel, points []mark) string {
	if len(points) < 2 {
		return ""
	}
	var d strings.Builder
	for k, m := range points {
		d.WriteString(map[bool]string{true: "M", false: "L"}[k == 0] + coord(p.x.at(m.x)) + " " + coord(p.y.at(m.cell.Median)))
	}
	return d.String()
}
