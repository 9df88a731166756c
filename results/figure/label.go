package figure

import "slices"

// labelHeight is the space that a direct label needs.
const labelHeight = 16.0

// directLabels writes each line's name beside its last mark, moved apart where
// they would overlap, with the mark itself as a key.
func directLabels(c *canvas, p *panel, lines []series) {
	type place struct {
		index int
		y     float64
	}
	places := make([]place, len(lines))
	for i, l := range lines {
		places[i] = place{i, p.y.at(l.points[len(l.points)-1].cell.Median)}
	}
	slices.SortStableFunc(places, func(a, b place) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	ys := make([]float64, len(places))
	for i := range places {
		ys[i] = places[i].y
	}
	spread(ys, labelHeight, p.y.to+4, p.y.from)
	for k, q := range places {
		x := p.x.to + 8
		c.marker(q.index, x+4, ys[k], 4, fillClass(q.index))
		c.text(x+13, ys[k]+4, "lb "+fillClass(q.index), "start", clip(lines[q.index].label, 212))
	}
}

// spread moves ascending positions apart to at least gap, within low and high
// where they fit, and as little as that allows.
func spread(ys []float64, gap, low, high float64) {
	for i := range ys {
		ys[i] = max(ys[i], low)
		if i > 0 {
			ys[i] = max(ys[i], ys[i-1]+gap)
		}
	}
	limit := high
	for i := len(ys) - 1; i >= 0; i-- {
		if ys[i] <= limit {
			break
		}
		ys[i] = limit
		limit -= gap
	}
}

// legend writes the keys of many lines in columns below a figure and returns
// the new bottom.
func legend(c *canvas, labels []string, left, top float64) float64 {
	widest := 0.0
	for _, l := range labels {
		widest = max(widest, textWidth(l)+56)
	}
	width := figureWidth - left
	columns := max(1, int(width/widest))
	slot := width / float64(columns)
	y := top
	for i, l := range labels {
		x := left + float64(i%columns)*slot
		y = top + float64(i/columns)*20 + 12
		c.line(x, y, x+30, y, "ln "+strokeClass(i)+" "+dashClass(i))
		c.marker(i, x+15, y, 4, fillClass(i))
		c.text(x+38, y+4, "", "start", clip(l, slot-44))
	}
	return y + 10
}
