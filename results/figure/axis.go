package figure

import (
	"math"
	"strconv"

	"wirelab/results"
)

// axis maps values to coordinates and knows its ticks.
type axis struct {
	from, to float64 // coordinates
	min, max float64 // values; of a category axis -0.5 to n-0.5
	log      bool
	label    string
	ticks    []tick
}

type tick struct {
	value float64
	label string
}

// at returns the coordinate of v.
func (a *axis) at(v float64) float64 {
	lo, hi := a.min, a.max
	if a.log {
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	if hi == lo {
		return (a.from + a.to) / 2
	}
	return a.from + (v-lo)/(hi-lo)*(a.to-a.from)
}

// categoryAxis places n texts evenly.
func categoryAxis(label string, texts []string) axis {
	a := axis{min: -0.5, max: float64(len(texts)) - 0.5, label: label}
	for i, t := range texts {
		a.ticks = append(a.ticks, tick{float64(i), t})
	}
	return a
}

// valueAxis covers lo to hi with tidy ticks. The unit is scaled and shown with
// the name. With zero, an axis of values far from each other starts at 0.
func valueAxis(name, unit string, lo, hi float64, log, zero bool, want int) axis {
	scale := results.ScaleFor(unit, max(math.Abs(lo), math.Abs(hi)))
	a := axis{label: axisLabel(name, scale.Unit), log: log && lo > 0}
	f := scale.Factor
	if a.log {
		a.min, a.max, a.ticks = logTicks(lo, hi, f)
		return a
	}
	if zero && lo > 0 && lo < 0.9*hi {
		lo = 0
	}
	if lo == hi {
		pad := math.Abs(lo) * 0.1
		if pad == 0 {
			pad = 1 / f
		}
		if lo == 0 {
			hi = pad
		} else {
			lo, hi = lo-pad, hi+pad
		}
	}
	step := niceStep((hi - lo) * f / float64(want))
	first, last := math.Floor(lo*f/step+1e-9), math.Ceil(hi*f/step-1e-9)
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	if step*math.Pow(10, float64(decimals)) != math.Trunc(step*math.Pow(10, float64(decimals))) {
		decimals++ // steps of 2.5
	}
	for k := first; k <= last; k++ {
		a.ticks = append(a.ticks, tick{k * step / f, tickText(k*step, decimals)})
	}
	a.min, a.max = first*step/f, last*step/f
	return a
}

// tickText writes a tick; whole numbers beyond seven digits get an exponent.
func tickText(v float64, decimals int) string {
	if math.Abs(v) >= 1e7 || v != 0 && decimals > 6 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	if v == 0 {
		return "0"
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

func axisLabel(name, unit string) string {
	if unit == "" {
		return name
	}
	return name + " (" + unit + ")"
}

// niceStep rounds up to 1, 2, 2.5 or 5 times a power of ten.
func niceStep(raw float64) float64 {
	if raw <= 0 || math.IsInf(raw, 0) || math.IsNaN(raw) {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if m*power >= raw*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logTicks puts ticks at 1, 2 and 5 within few decades, else at powers of ten.
func logTicks(lo, hi, factor float64) (low, high float64, ticks []tick) {
	lo, hi = lo*factor, hi*factor
	marks := []float64{1}
	if hi/lo <= 200 {
		marks = []float64{1, 2, 5}
	}
	low, high = lo, hi
	for e := math.Floor(math.Log10(lo)) - 1; e <= math.Ceil(math.Log10(hi))+1; e++ {
		for _, m := range marks {
			v := m * math.Pow(10, e)
			if v <= lo*(1+1e-9) {
				low = v
				ticks = ticks[:0]
			}
			ticks = append(ticks, tick{v / factor, strconv.FormatFloat(v, 'g', 4, 64)})
			if v >= hi*(1-1e-9) {
				high = v
				if high == low {
					low /= 2
					high *= 2
				}
				return low / factor, high / factor, ticks
			}
		}
	}
	return low / factor, high / factor, ticks
}

// sweepAxis covers the numbers xs of a sweep, with a tick at each where there
// is room, padded so that marks do not touch the frame.
func sweepAxis(name, unit string, xs []float64, log bool, width float64) axis {
	lo, hi := xs[0], xs[len(xs)-1]
	a := valueAxis(name, unit, lo, hi, log, false, 6)
	if a.log {
		r := math.Pow(hi/lo, 0.04)
		if hi == lo {
			r = 2
		}
		a.min, a.max = lo/r, hi*r
	} else {
		pad := (hi - lo) * 0.04
		if hi == lo {
			pad = max(math.Abs(lo)*0.5, 1)
		}
		a.min, a.max = lo-pad, hi+pad
	}
	own := a
	own.ticks = nil
	scale := results.ScaleFor(unit, max(math.Abs(lo), math.Abs(hi)))
	own.from, own.to = 0, width
	end := math.Inf(-1)
	for _, x := range xs {
		label := scale.Number(x)
		left := own.at(x) - textWidth(label)/2
		if left < end+6 {
			own.ticks = nil
			break
		}
		end = left + textWidth(label)
		own.ticks = append(own.ticks, tick{x, label})
	}
	if own.ticks != nil {
		return own
	}
	var kept []tick
	for _, t := range a.ticks {
		if t.value >= a.min && t.value <= a.max {
			kept = append(kept, t)
		}
	}
	a.ticks = kept
	return a
}

// panel is one frame with two axes.
type panel struct {
	x, y  axis
	title string
}

// place gives a panel its rectangle.
func (p *panel) place(left, top, width, height float64) {
	p.x.from, p.x.to = left, left+width
	p.y.from, p.y.to = top+height, top
}

// frame draws grid, ticks and labels; the label of the vertical axis lies
// flat above it, where it can be read.
func (p *panel) frame(c *canvas) {
	for _, t := range p.y.ticks {
		y := p.y.at(t.value)
		c.line(p.x.from, y, p.x.to, y, "g")
		c.text(p.x.from-8, y+4, "s", "end", t.label)
	}
	c.line(p.x.from, p.y.from, p.x.to, p.y.from, "ax")
	for _, t := range p.x.ticks {
		x := p.x.at(t.value)
		c.line(x, p.y.from, x, p.y.from+4, "ax")
		c.text(x, p.y.from+18, "s", "middle", t.label)
	}
	c.text((p.x.from+p.x.to)/2, p.y.from+36, "s", "middle", p.x.label)
	label := p.y.label
	if p.title != "" {
		c.text(p.x.from, p.y.to-24, "pt", "start", p.title)
	}
	c.text(p.x.from, p.y.to-9, "s", "start", label)
}

// room for tick labels left of the panel, from the widest label.
func (p *panel) leftRoom() float64 {
	w := 0.0
	for _, t := range p.y.ticks {
		w = max(w, textWidth(t.label))
	}
	return w + 14
}
