package kinds

import (
	"fmt"
	"strings"

	"wirelab/results"
	"wirelab/workloads/tcp"
)

// Section is a part of the metrics page: all metrics of one name in the result
// scope.
type Section struct {
	Title   string // "workload tcp"
	Text    string // what it is, one paragraph
	Metrics []results.MetricDef
	// Series are the time series, which figures of kind "time" draw.
	Series []results.MetricDef
}

// Sections describes every workload kind with all the metrics it can have.
func Sections() []Section {
	var out []Section
	for _, k := range Kinds() {
		w := k.New()
		if t, ok := w.(*tcp.Workload); ok {
			t.Arrivals = &tcp.Arrivals{Capacity: 1} // with these it has them all
		}
		s := Section{Title: "workload " + k.Name, Text: k.Doc, Metrics: w.Metrics(), Series: k.Series}
		if k.Name == "command" {
			s.Text += " Each capture block adds a metric of its own."
		}
		out = append(out, s)
	}
	return out
}

const pageHead = `# Metrics

Generated from the definitions in the code (` + "`go generate ./workloads/kinds`" + `); do not edit.

A metric of a workload or instrument NAME is ` + "`result.NAME.METRIC`" + `, of a flow ` + "`result.NAME.flows[*].METRIC`" + `, of a link
` + "`result.TOPOLOGY.LINK.METRIC`" + ` (` + "`.reverse.METRIC`" + ` for the other direction). All values are in base SI units, and the unit is the last
part of the name. They cover the measurement window, the last ` + "`duration`" + ` of the load, unless the definition says otherwise;
a workload with ` + "`start`" + `, ` + "`stop`" + ` or ` + "`after`" + ` only the part of it in which it was active. A value that could not be measured is
absent, never zero. Quantiles are nearest-rank, exact unless said otherwise.
`

// Page returns docs/metrics.md.
func Page(sections []Section) string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.Title, s.Text)
		table(&b, "metric", s.Metrics, true)
		if len(s.Series) > 0 {
			b.WriteString("\nTime series:\n")
			table(&b, "series", s.Series, false)
		}
	}
	return b.String()
}

func table(b *strings.Builder, what string, metrics []results.MetricDef, flows bool) {
	if len(metrics) == 0 {
		return
	}
	if flows {
		fmt.Fprintf(b, "\n| %s | unit | per flow | definition | source |\n|---|---|---|---|---|\n", what)
	} else {
		fmt.Fprintf(b, "\n| %s | unit | definition | source |\n|---|---|---|---|\n", what)
	}
	for _, m := range metrics {
		fmt.Fprintf(b, "| `%s` | %s | ", m.Name, m.Unit)
		if flows {
			if m.PerFlow {
				b.WriteString("yes")
			}
			b.WriteString(" | ")
		}
		fmt.Fprintf(b, "%s | %s |\n", cell(m.Definition), cell(m.Source))
	}
}

// cell keeps a text from ending its table cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
