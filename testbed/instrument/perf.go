package instrument

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"wirelab/emul/attr"
	"wirelab/results"
)

// ErrRequired is wrapped by the error of an instrument whose block says
// required = true on a host that cannot do it: the host is unfit.
var ErrRequired = errors.New("required, but not available on this host")

// Perf is the instrument "perf": the kernel's and the processor's event
// counters over the actor processes or over whole cores. An event that the
// host does not count has a status and no value; only a required one stops a
// run.
type Perf struct {
	Settings
	Events   []string      `hcl:"events,optional" default:"[\"task-clock\", \"context-switches\", \"cpu-migrations\", \"page-faults\"]" doc:"Events to count, by their names in perf list, or rNNNN for a raw one in hexadecimal."`
	Per      string        `hcl:"per,optional" default:"process" doc:"\"process\" counts the workloads' processes with their threads and children, \"core\" everything that runs on the host."`
	Required bool          `hcl:"required,optional" default:"false" doc:"True makes an event that this host cannot count an error."`
	Interval time.Duration `hcl:"interval,optional" default:"0s" doc:"Time between two samples of a series; without one only the window's totals are counted."`
}

var _ Instrument = (*Perf)(nil)

func newPerf() Instrument {
	return &Perf{
		Settings: Settings{Enabled: true}, Per: "process",
		Events: []string{"task-clock", "context-switches", "cpu-migrations", "page-faults"},
	}
}

// Validate implements [Instrument].
func (c *Perf) Validate() []attr.Problem {
	problems := checkInterval(c.Interval, true)
	if len(c.Events) == 0 {
		problems = append(problems, attr.At("events", "no events", `Name at least one, for example ["task-clock", "cache-misses"].`))
	}
	if c.Per != "process" && c.Per != "core" {
		problems = append(problems, attr.At("per", "unknown word", `%q is neither "process" nor "core".`, c.Per))
	}
	seen := map[string]string{}
	for _, name := range c.Events {
		e, ok := findEvent(name)
		if !ok {
			problems = append(problems, unknownEvent(name))
			continue
		}
		if other, twice := seen[e.name]; twice {
			problems = append(problems, attr.At("events", "event named twice", "%q and %q are the same event; leave one out.", other, name))
		}
		seen[e.name] = name
	}
	return problems
}

func unknownEvent(name string) attr.Problem {
	if near := nearEvents(name); len(near) > 0 {
		return attr.At("events", "unknown event", "%q is no event; did you mean %q?", name, strings.Join(near, `", "`))
	}
	var names []string
	for _, e := range plainEvents {
		names = append(names, e.name)
	}
	return attr.At("events", "unknown event", "%q is no event; known are %s, those of caches such as L1-dcache-loads, LLC-load-misses or dTLB-loads, and raw ones as rNNNN.",
		name, strings.Join(names, ", "))
}

// Needs implements [Instrument].
func (c *Perf) Needs() (nodes, links []string) { return nil, nil }

// events are the known ones of the block, in its order.
func (c *Perf) events() []perfEvent {
	var out []perfEvent
	for _, name := range c.Events {
		if e, ok := findEvent(name); ok {
			out = append(out, e)
		}
	}
	return out
}

// Metrics implements [Instrument].
func (c *Perf) Metrics() []results.MetricDef {
	if !c.Enabled {
		return nil
	}
	over := "the workloads' processes, threads and children included"
	if c.Per == "core" {
		over = "all cores"
	}
	var defs []results.MetricDef
	named := map[string]bool{}
	for _, e := range c.events() {
		named[e.name] = true
		d := results.MetricDef{Name: e.metric(), Unit: "events", Definition: fmt.Sprintf("%s in the window, sum of %s.", e.name, over), Source: e.source()}
		if e.inSeconds() {
			d.Unit = "s"
		}
		defs = append(defs, d)
	}
	for _, r := range perfRatios() {
		if named[r.part] && named[r.whole] {
			defs = append(defs, results.MetricDef{Name: r.name, Unit: "1", Definition: r.definition, Source: r.part + " and " + r.whole})
		}
	}
	return defs
}

// Start implements [Instrument].
func (c *Perf) Start(ctx context.Context, t Target) (Running, error) {
	return c.start(ctx, t, systemPerf(), systemClock())
}

func (c *Perf) start(ctx context.Context, t Target, sys perfSystem, clk clock) (Running, error) {
	if !c.Enabled {
		return nothing{}, nil
	}
	m := &perfRun{config: *c, target: t, sys: sys, events: c.events()}
	m.open()
	if c.Required {
		var missing []string
		for i, e := range m.events {
			if m.failed[i] != "" {
				missing = append(missing, fmt.Sprintf("%s (%s)", e.name, m.failed[i]))
			}
		}
		if len(missing) > 0 {
			m.close()
			return nil, fmt.Errorf("instrument %s: perf events %s: %w; leave required out to run without them", t.Name, strings.Join(missing, ", "), ErrRequired)
		}
	}
	m.loop = newLoop(&m.target, c.Interval, m.step)
	m.loop.clock = clk
	m.loop.begin(ctx)
	return m, nil
}

// ratios adds the ratios that the values of one subject allow.
func ratios(values map[string]float64) {
	for _, r := range perfRatios() {
		part, whole := perfMetric(r.part), perfMetric(r.whole)
		p, ok := values[part]
		w, both := values[whole]
		if !ok || !both || w <= 0 {
			continue
		}
		v := p / w
		if r.complement {
			v = max(0, 1-v)
		}
		values[r.name] = v
	}
}

// perfMetric is the metric of an event that is known by its name.
func perfMetric(name string) string {
	e, _ := findEvent(name)
	return e.metric()
}

// sortedProcesses are the target's processes in a fixed order.
func sortedProcesses(list []Process) []Process {
	return slices.SortedFunc(slices.Values(list), func(a, b Process) int { return strings.Compare(a.Name, b.Name) })
}
