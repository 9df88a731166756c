package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"wirelab/results"
	"wirelab/results/stat"
)

// Timeline is what a time figure is drawn from.
type Timeline struct {
	Runs    []*results.Run // of which the valid ones are drawn
	Samples Reader
	// Traces, if not nil, are used in place of Samples.
	Traces []*Trace
	Defs   []results.NamedMetrics
	// Warmup and Duration are in seconds; the warm-up is shaded.
	Warmup, Duration float64
	// Slices is the number of time slices of a line, 240 when zero.
	Slices int
	// All draws invalid runs too.
	All bool
	// Plain leaves out the line on n, for one of many small charts.
	Plain bool
}

// maxPanels bounds the points that a time figure lays side by side.
const maxPanels = 12

// A figure of many lines gets coarser ones, to stay within figureBytes; a
// slice takes about sliceBytes.
const figureBytes, sliceBytes = 500_000, 22

// timeCell is one panel of a time figure.
type timeCell struct {
	point results.Point
	paths []string
	unit  string
	lines []*Trace
}

// Time draws samples against the time since the start of the load, a panel per
// point of the sweep and unit, with one thin line per repetition and flow. The
// warm-up is shaded.
func Time(fig Figure, in Timeline) ([]byte, error) {
	if len(fig.Y) == 0 {
		return nil, fmt.Errorf("draw figure %s: it names no series (y)", fig.Name)
	}
	if in.Slices == 0 {
		in.Slices = 240
	}
	cells, notes, err := timeCells(fig, in)
	if err != nil {
		return nil, err
	}
	c := &canvas{}
	title := titleOf(fig)
	c.text(0, 18, "tt", "start", title)
	lines := 0
	for _, cell := range cells {
		lines += len(cell.lines)
	}
	if lines == 0 {
		c.text(0, 46, "s", "start", "No valid run has samples of "+strings.Join(fig.Y, ", ")+".")
		return c.document(identifier("fig", fig.Name), title, title+": no samples.", figureWidth, 60), nil
	}
	top := 37.0
	if !in.Plain {
		c.text(0, top, "s", "start", strings.Join(append([]string{timeNote(cells)}, notes...), " "))
		top += 21
	}
	top = timeLegend(c, fig.Y, top)
	bottom := drawTimePanels(c, fig, in, cells, top)
	return c.document(identifier("fig", fig.Name), title, title+", against the time since the start of the load.", figureWidth, bottom), nil
}

// timeCells reads the samples, run by run, and groups them into panels.
func timeCells(fig Figure, in Timeline) (cells []*timeCell, notes []string, err error) {
	var runs []*results.Run
	for _, r := range in.Runs {
		if r.Usable() || in.All {
			runs = append(runs, r)
		}
	}
	points := stat.SortPoints(runs)
	if len(points) > maxPanels {
		notes = append(notes, fmt.Sprintf("The first %d of %d points.", maxPanels, len(points)))
		points = points[:maxPanels]
	}
	unit := func(y string) string { return UnitOf(in.Defs, y) }
	for _, ys := range byUnit(fig.Y, unit) {
		for _, p := range points {
			cells = append(cells, &timeCell{point: p, paths: ys, unit: unit(ys[0])})
		}
	}
	dropped := 0
	for _, r := range runs {
		if !slices.ContainsFunc(points, func(p results.Point) bool { return p.ID == r.Point.ID }) {
			continue
		}
		traces, more, err := in.of(r, fig)
		if err != nil {
			return nil, nil, fmt.Errorf("draw figure %s: %w", fig.Name, err)
		}
		dropped += more
		for _, t := range traces {
			for _, cell := range cells {
				if cell.point.ID == r.Point.ID && slices.Contains(cell.paths, t.Path) {
					cell.lines = append(cell.lines, t)
				}
			}
		}
	}
	lines := 0
	for _, cell := range cells {
		lines += len(cell.lines)
	}
	count := max(figureBytes/(sliceBytes*max(lines, 1)), 16)
	for _, cell := range cells {
		for i, t := range cell.lines {
			cell.lines[i] = t.Coarser(count)
		}
	}
	if dropped > 0 {
		notes = append(notes, fmt.Sprintf("%d flows are not drawn.", dropped))
	}
	return slices.DeleteFunc(cells, func(c *timeCell) bool { return len(c.lines) == 0 }), notes, nil
}

// of returns the traces of one run.
func (in Timeline) of(r *results.Run, fig Figure) ([]*Trace, int, error) {
	if in.Traces == nil {
		return Collect(r, in.Samples, PickPaths(fig.Y), in.Warmup+in.Duration, in.Slices)
	}
	var own []*Trace
	for _, t := range in.Traces {
		if t.Run == r {
			own = append(own, t)
		}
	}
	return own, 0, nil
}

func timeNote(cells []*timeCell) string {
	lo, hi, flows := math.MaxInt, 0, false
	for _, cell := range cells {
		seen := map[int]bool{}
		for _, t := range cell.lines {
			seen[t.Run.Index] = true
			flows = flows || t.Flow > 0
		}
		lo, hi = min(lo, len(seen)), max(hi, len(seen))
	}
	n := fmt.Sprintf("n = %d", lo)
	if lo != hi {
		n = fmt.Sprintf("n = %d to %d", lo, hi)
	}
	what := "one line per repetition"
	if flows {
		what = "one line per repetition and flow"
	}
	if hi == 1 {
		what = "one line per flow"
	}
	return n + ": " + what + "."
}

// timeLegend writes the keys and returns the top of the panels.
func timeLegend(c *canvas, ys []string, top float64) float64 {
	if len(ys) == 1 {
		return top + 30
	}
	x, y := 0.0, top
	for i, p := range ys {
		label := shortName(p, ys)
		if w := textWidth(label) + 46; x > 0 && x+w > figureWidth {
			x, y = 0, y+18
		}
		c.line(x, y-4, x+22, y-4, "ln "+strokeClass(i)+" "+dashClass(i))
		c.text(x+28, y, "", "start", label)
		x += textWidth(label) + 46
	}
	return y + 48
}

// drawTimePanels lays the panels out in a grid with equal axes per unit.
func drawTimePanels(c *canvas, fig Figure, in Timeline, cells []*timeCell, top float64) float64 {
	columns, gap := 2, 34.0
	points := map[string]bool{}
	for _, cell := range cells {
		points[cell.point.ID] = true
	}
	height := 170.0
	if len(points) == 1 {
		columns, height = 1, 220
	}
	slot := (figureWidth - gap*float64(columns-1)) / float64(columns)
	span := in.Warmup + in.Duration
	row, column := 0, 0
	for i, cell := range cells {
		if i > 0 && cell.unit != cells[i-1].unit && column > 0 {
			row, column = row+1, 0
		}
		lo, hi := unitExtent(cells, cell.unit)
		p := panel{
			x: valueAxis("time", "s", 0, span, false, false, 6),
			y: valueAxis(commonName(cell.paths), cell.unit, lo, hi, fig.LogY, true, 4),
		}
		p.x.max = span
		p.x.ticks = slices.DeleteFunc(p.x.ticks, func(t tick) bool { return t.value > span*(1+1e-9) })
		if len(points) > 1 {
			p.title = clip(cell.point.Label(), slot)
		}
		left := p.leftRoom()
		p.place(float64(column)*(slot+gap)+left, top+float64(row)*(height+92), slot-left-6, height)
		if in.Warmup > 0 {
			c.rect(p.x.from, p.y.to, p.x.at(in.Warmup)-p.x.from, height, "wu")
			if p.x.at(in.Warmup)-p.x.from > 54 {
				c.text(p.x.from+5, p.y.from-7, "s sm", "start", "warm-up")
			}
		}
		p.frame(c)
		drawTraces(c, &p, fig.Y, cell)
		if column++; column == columns {
			row, column = row+1, 0
		}
	}
	if column > 0 {
		row++
	}
	return top + float64(row)*(height+92) - 44
}

func unitExtent(cells []*timeCell, unit string) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, cell := range cells {
		if cell.unit != unit {
			continue
		}
		for _, t := range cell.lines {
			for _, q := range t.points() {
				lo, hi = min(lo, q[1]), max(hi, q[1])
			}
		}
	}
	return lo, hi
}

func drawTraces(c *canvas, p *panel, ys []string, cell *timeCell) {
	width := "ln"
	if len(cell.lines) > len(cell.paths) {
		width = "th"
	}
	if len(cell.lines) > 3*len(cell.paths) {
		width = "th fn"
	}
	for _, t := range cell.lines {
		i := slices.Index(ys, t.Path)
		dash := ""
		if width == "ln" {
			dash = " " + dashClass(i)
		}
		var d strings.Builder
		for k, q := range t.points() {
			if p.y.log && q[1] <= 0 {
				continue
			}
			d.WriteString(map[bool]string{true: "M", false: "L"}[k == 0] + coord(p.x.at(q[0])) + " " + coord(p.y.at(q[1])))
		}
		if path := d.String(); strings.HasPrefix(path, "M") {
			c.path(path, width+" "+strokeClass(i)+dash)
		} else if path != "" {
			c.path("M"+path[1:], width+" "+strokeClass(i)+dash)
		}
	}
}
