package report

import (
	"fmt"

	"wirelab/results/figure"
	"wirelab/results/stat"
)

// Output holds the files of a report.
type Output struct {
	HTML     []byte            // report.html
	Markdown []byte            // summary.md
	JUnit    []byte            // checks.xml
	Figures  map[string][]byte // figures/NAME.svg, by NAME
}

// Files returns the files by their name in the run directory.
func (o *Output) Files() map[string][]byte {
	files := map[string][]byte{"report.html": o.HTML, "summary.md": o.Markdown, "checks.xml": o.JUnit}
	for name, svg := range o.Figures {
		files["figures/"+name+".svg"] = svg
	}
	return files
}

// Render makes all files of the report. What cannot be drawn (a figure of a
// series that is broken on disk, say) is said on the page in its place; an
// error means that the input itself is unusable.
func Render(in Input) (*Output, error) {
	if in.Manifest == nil {
		return nil, fmt.Errorf("render report: no manifest")
	}
	d := newData(in)
	out := &Output{Figures: map[string][]byte{}}
	for _, f := range d.figures {
		if f.svg != nil {
			out.Figures[f.file] = f.svg
		}
	}
	out.Figures["topology"] = d.topology
	var err error
	if out.HTML, err = renderPage(d); err != nil {
		return nil, fmt.Errorf("render report: %w", err)
	}
	out.Markdown = renderMarkdown(d)
	if out.JUnit, err = renderJUnit(d); err != nil {
		return nil, fmt.Errorf("render report: %w", err)
	}
	return out, nil
}

// data is an input with what several pages derive from it.
type data struct {
	Input
	table    *stat.Table
	metrics  []string // of the table, in the order of the definitions
	short    []string // of short tables
	sweep    []string
	counts   counts
	checks   []checkSum
	figures  []drawn
	topology []byte
	series   seriesView
}

// drawn is a figure, or why it could not be drawn.
type drawn struct {
	figure.Figure
	file string // name of the file, without folder and extension
	svg  []byte
	err  error
}

func newData(in Input) *data {
	d := &data{Input: in, table: stat.Tabulate(in.Runs), checks: sumChecks(in.Runs), counts: count(in.Manifest, in.Runs)}
	d.metrics = orderedMetrics(d.table, in.Manifest.Metrics)
	d.short = headlineMetrics(in, d.table, d.metrics)
	d.sweep = sweepNames(d.table.Points)
	d.topology = figure.Topology(diagram(in))
	c := collect(in)
	d.figures = drawFigures(in, d, c)
	d.series = newSeries(in, c)
	return d
}
