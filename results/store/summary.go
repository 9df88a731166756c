package store

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"

	"wirelab/results"
)

var summaryColumns = []string{"run", "point", "repetition", "valid", "metric", "value", "unit"}

// WriteSummary writes summary.csv: one row per run and metric, runs by index
// and metrics by name, invalid runs marked. The columns are run, point,
// repetition, valid, one per sweep variable, metric, value, unit. A sweep
// variable with the name of another column is called sweep.NAME. Values read
// back to the same bits.
func (d *Dir) WriteSummary(runs []*results.Run, sweepNames []string) error {
	text, err := Summary(runs, sweepNames)
	if err != nil {
		return err
	}
	return d.WriteFile(SummaryName, text)
}

// Summary is the text of summary.csv.
func Summary(runs []*results.Run, sweepNames []string) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	header := slices.Clone(summaryColumns[:4])
	for _, name := range sweepNames {
		if slices.Contains(summaryColumns, name) {
			name = "sweep." + name
		}
		header = append(header, name)
	}
	header = append(header, summaryColumns[4:]...)
	_ = w.Write(header) // errors stay in w
	ordered := slices.Clone(runs)
	slices.SortStableFunc(ordered, func(a, b *results.Run) int { return cmp.Compare(a.Index, b.Index) })
	for _, r := range ordered {
		values := slices.Clone(r.Values)
		slices.SortStableFunc(values, func(a, b results.Value) int { return cmp.Compare(a.Metric, b.Metric) })
		for _, v := range values {
			if !finite(v.Value) {
				continue
			}
			record := []string{strconv.Itoa(r.Index), r.Point.ID, strconv.Itoa(r.Repetition), strconv.FormatBool(r.Valid)}
			for _, name := range sweepNames {
				record = append(record, r.Point.SweepText(name))
			}
			_ = w.Write(append(record, v.Metric, results.ExactFloat(v.Value), v.Unit))
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return nil, fmt.Errorf("write summary: %w", err)
	}
	return out.Bytes(), nil
}
