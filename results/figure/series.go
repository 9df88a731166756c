package figure

import (
	"slices"
	"strings"

	"wirelab/results"
	"wirelab/results/stat"
)

// maxSeries bounds the lines of one figure; beyond it nobody can tell them
// apart, and the figure says that it left some out.
const maxSeries = 24

// series is one line of a line figure.
type series struct {
	label  string
	metric string
	points []mark // by ascending position
}

// mark is one cell at its place.
type mark struct {
	x    float64
	text string // the sweep value
	cell *stat.Cell
}

// buildSeries makes one line per metric and combination of the sweep variables
// other than x. left is the number of lines that were left out.
func buildSeries(fig Figure, ys []string, table *stat.Table, scale sweepScale) (lines []series, left int) {
	for _, y := range ys {
		byKey := map[string]*series{}
		var order []string
		for _, p := range table.Points {
			cell := table.Cell(p.ID, y)
			if cell == nil {
				continue
			}
			key := otherValues(fig, p, table.Points)
			s := byKey[key]
			if s == nil {
				s = &series{metric: y, label: seriesLabel(y, ys, key)}
				byKey[key] = s
				order = append(order, key)
			}
			m := mark{cell: cell}
			if fig.X != "" {
				m.text = p.SweepText(fig.X)
				m.x = scale.position(m.text)
			}
			s.points = append(s.points, m)
		}
		for _, key := range order {
			slices.SortStableFunc(byKey[key].points, func(a, b mark) int {
				switch {
				case a.x < b.x:
					return -1
				case a.x > b.x:
					return 1
				}
				return 0
			})
			lines = append(lines, *byKey[key])
		}
	}
	if len(lines) > maxSeries {
		return lines[:maxSeries], len(lines) - maxSeries
	}
	return lines, 0
}

// otherValues names the point by the variables that are not on the axis and
// that differ between points; the By variable comes first.
func otherValues(fig Figure, p results.Point, all []results.Point) string {
	var parts []string
	for _, v := range p.Sweep {
		if v.Name == fig.X || !varies(v.Name, all) {
			continue
		}
		part := v.Name + " = " + v.Text
		if v.Name == fig.By {
			parts = append([]string{part}, parts...)
		} else {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}

func varies(name string, points []results.Point) bool {
	for _, p := range points {
		if p.SweepText(name) != points[0].SweepText(name) {
			return true
		}
	}
	return false
}

// seriesLabel names a line by what tells it from the others: the workload when
// all show one metric, the metric when all are of one workload, else both.
func seriesLabel(y string, ys []string, key string) string {
	label := shortName(y, ys)
	switch {
	case key == "":
		return label
	case len(ys) == 1:
		return key
	}
	return label + ", " + key
}

// shortName leaves out what all paths share.
func shortName(y string, ys []string) string {
	name, metric := cut(y)
	sameName, sameMetric := true, true
	for _, o := range ys {
		n, m := cut(o)
		sameName = sameName && n == name
		sameMetric = sameMetric && m == metric
	}
	switch {
	case sameMetric && name != "":
		return name
	case sameName:
		return plainName(metric)
	}
	return name + " " + plainName(metric)
}

// commonName names the vertical axis of paths with one unit.
func commonName(ys []string) string {
	_, first := cut(ys[0])
	names := []string{}
	for _, y := range ys {
		_, m := cut(y)
		if n := plainName(m); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if len(names) == 1 {
		return plainName(first)
	}
	// Several quantities: their common first words, if any.
	words := strings.Fields(names[0])
	for _, n := range names[1:] {
		other := strings.Fields(n)
		k := 0
		for k < len(words) && k < len(other) && words[k] == other[k] {
			k++
		}
		words = words[:k]
	}
	if len(words) == 0 {
		return strings.Join(names[:min(len(names), 3)], ", ")
	}
	return strings.Join(words, " ")
}

// byUnit groups paths that can share a vertical axis, in order.
func byUnit(ys []string, unit func(string) string) [][]string {
	var groups [][]string
	index := map[string]int{}
	for _, y := range ys {
		u := unit(y)
		i, ok := index[u]
		if !ok {
			i = len(groups)
			index[u] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], y)
	}
	return groups
}
