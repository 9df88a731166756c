package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirelab/results"
)

// environment lists what the results depend on beside the experiment.
func environment(m *results.Manifest) []fact {
	h := m.Host
	memory := ""
	if h.MemoryBytes > 0 {
		memory = fmt.Sprintf("%.1f GiB", float64(h.MemoryBytes)/(1<<30))
	}
	cores := ""
	if h.Cores > 0 {
		cores = fmt.Sprint(h.Cores)
	}
	var mitigations []string
	for _, k := range slices.Sorted(maps.Keys(h.Mitigations)) {
		mitigations = append(mitigations, k+": "+h.Mitigations[k])
	}
	var variables []string
	for _, k := range slices.Sorted(maps.Keys(m.Variables)) {
		variables = append(variables, k+" = "+m.Variables[k])
	}
	facts := []fact{
		{"wirelab", m.Version}, {"Go", h.GoVersion}, {"host", h.Hostname}, {"kernel", strings.TrimSpace(h.OS + " " + h.Kernel + " " + h.Arch)},
		{"CPU", h.CPUModel}, {"cores", cores}, {"sockets × cores × threads", h.Topology}, {"SMT", h.SMT}, {"governor", h.Governor}, {"memory", memory},
		{"virtualization", h.Virtual}, {"load average at start", h.LoadAverage}, {"mitigations", strings.Join(mitigations, "; ")},
		{"seed", fmt.Sprint(m.Seed)}, {"repetitions", fmt.Sprint(m.Repetitions)}, {"variables", strings.Join(variables, ", ")},
		{"experiment SHA-256", m.ExperimentHash}, {"plan SHA-256", m.PlanHash},
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

// sortedFacts lists a map by name.
func sortedFacts(values map[string]string) []fact {
	var out []fact
	for _, k := range slices.Sorted(maps.Keys(values)) {
		out = append(out, fact{k, values[k]})
	}
	return out
}

type namedNumber struct {
	name  string
	value float64
}

func sortedNumbers(values map[string]float64) []namedNumber {
	var out []namedNumber
	for _, k := range slices.Sorted(maps.Keys(values)) {
		out = append(out, namedNumber{k, values[k]})
	}
	return out
}

// definition tells what a number is.
type definition struct {
	Metric, Anchor, Unit, Text, Source string
}

// definitions lists every metric of the table once.
func definitions(d *data) []definition {
	var out []definition
	for _, m := range d.metrics {
		def, ok := results.FindMetric(d.Manifest.Metrics, m)
		if !ok {
			def.Definition = "No definition is recorded."
			if _, last := splitMetric(m); last == overheadMetric {
				def.Definition, def.Source = "CPU time that this instrument used during the run.", "CLOCK_THREAD_CPUTIME_ID"
			}
			for _, p := range d.table.Points {
				if c := d.table.Cell(p.ID, m); c != nil {
					def.Unit = c.Unit
				}
			}
		}
		unit := def.Unit
		if unit == "1" {
			unit = "ratio"
		}
		out = append(out, definition{m, anchor(m), unit, def.Definition, def.Source})
	}
	return out
}
