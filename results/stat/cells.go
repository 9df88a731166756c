package stat

import (
	"cmp"
	"math"
	"slices"

	"wirelab/results"
)

// Cell is one metric at one point over its valid repetitions.
type Cell struct {
	Point  results.Point
	Metric string // path, "cubic.goodput_bps"
	Unit   string
	Summary
	// Runs are the indices of the runs behind Values, in the same order.
	Runs []int
}

// Table holds the cells of an experiment.
type Table struct {
	// Points in the order of [SortPoints], those without a valid run too.
	Points []results.Point
	// Metrics in the order in which the runs report them.
	Metrics []string
	cells   map[[2]string]*Cell
}

// Cell returns the cell of a point and metric, nil when no valid run has it.
func (t *Table) Cell(point, metric string) *Cell { return t.cells[[2]string{point, metric}] }

// Tabulate groups the values of valid runs. Runs may come in any order; the
// table depends on their indices only.
func Tabulate(runs []*results.Run) *Table {
	t := &Table{cells: map[[2]string]*Cell{}}
	ordered := slices.Clone(runs)
	slices.SortStableFunc(ordered, func(a, b *results.Run) int { return cmp.Compare(a.Index, b.Index) })
	seenMetric := map[string]bool{}
	values := map[[2]string][]float64{}
	for _, r := range ordered {
		if !r.Usable() {
			continue
		}
		for _, v := range r.Values {
			if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) {
				continue
			}
			if !seenMetric[v.Metric] {
				seenMetric[v.Metric] = true
				t.Metrics = append(t.Metrics, v.Metric)
			}
			key := [2]string{r.Point.ID, v.Metric}
			c := t.cells[key]
			if c == nil {
				c = &Cell{Point: r.Point, Metric: v.Metric, Unit: v.Unit}
				t.cells[key] = c
			}
			values[key] = append(values[key], v.Value)
			c.Runs = append(c.Runs, r.Index)
		}
	}
	for key, c := range t.cells {
		c.Summary = Summarize(values[key])
	}
	t.Points = SortPoints(ordered)
	return t
}

// SortPoints returns the distinct points of runs, the first sweep variable
// most significant: numbers ascend, texts keep the order of their first run.
func SortPoints(runs []*results.Run) []results.Point {
	var points []results.Point
	seen := map[string]bool{}
	rank := map[[2]string]int{}
	for _, r := range runs {
		if seen[r.Point.ID] {
			continue
		}
		seen[r.Point.ID] = true
		points = append(points, r.Point)
		for _, s := range r.Point.Sweep {
			if _, ok := rank[[2]string{s.Name, s.Text}]; !ok {
				rank[[2]string{s.Name, s.Text}] = len(rank)
			}
		}
	}
	slices.SortStableFunc(points, func(a, b results.Point) int {
		for i := range min(len(a.Sweep), len(b.Sweep)) {
			x, y := a.Sweep[i], b.Sweep[i]
			c := cmp.Compare(rank[[2]string{x.Name, x.Text}], rank[[2]string{y.Name, y.Text}])
			if x.Number != nil && y.Number != nil {
				c = cmp.Compare(*x.Number, *y.Number)
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	return points
}
