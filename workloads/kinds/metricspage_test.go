package kinds_test

import (
	"fmt"
	"regexp"
	"strings"

	"wirelab/results"
	"wirelab/testbed/instrument"
	"wirelab/workloads/kinds"
	"wirelab/workloads/tcp"
)

// section is a part of the metrics page: all metrics of one name in the result
// scope.
type section struct {
	title   string // "workload tcp"
	text    string // what it is, one paragraph
	metrics []results.MetricDef
	// series are the time series, which figures of kind "time" draw.
	series []results.MetricDef
}

// sections joins what workloads, with all the metrics that they can have,
// instruments and links define. Only a test may know them all: no package below
// experiments imports both workloads and testbed.
func sections() []section {
	var out []section
	for _, k := range kinds.Kinds() {
		w := k.New()
		if t, ok := w.(*tcp.Workload); ok {
			t.Arrivals = &tcp.Arrivals{Capacity: 1} // with these it has them all
		}
		s := section{title: "workload " + k.Name, text: k.Doc, metrics: w.Metrics(), series: k.Series}
		if k.Name == "command" {
			s.text += " Each capture block adds a metric of its own."
		}
		out = append(out, s)
	}
	for _, k := range instrument.Kinds() {
		out = append(out, section{title: "instrument " + k.Name, text: k.Doc, metrics: anyCore(k.New().Metrics())})
	}
	return append(out, section{title: "links",
		text:    "Of each direction of a link. A bare veth pair, without impairment, has only those that count packets and bytes.",
		metrics: instrument.LinkMetrics(true)})
}

var (
	coreName = regexp.MustCompile(`^cpu([0-9]+)_`)
	coreText = regexp.MustCompile(`\bcore [0-9]+\b`)
)

// anyCore keeps one definition for all cores, so that the page does not depend
// on the host that it is made on.
func anyCore(defs []results.MetricDef) []results.MetricDef {
	var out []results.MetricDef
	for _, d := range defs {
		if m := coreName.FindStringSubmatch(d.Name); m != nil {
			if m[1] != "0" {
				continue
			}
			d.Name = coreName.ReplaceAllString(d.Name, "cpuN_")
			d.Definition = coreText.ReplaceAllString(d.Definition, "core N")
		}
		out = append(out, d)
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

// metricsPage returns docs/metrics.md.
func metricsPage() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.title, s.text)
		table(&b, "metric", s.metrics, true)
		if len(s.series) > 0 {
			b.WriteString("\nTime series:\n")
			table(&b, "series", s.series, false)
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
