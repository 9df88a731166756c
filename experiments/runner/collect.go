package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirelab/emul"
	"wirelab/experiments"
	"wirelab/results"
	"wirelab/testbed"
	"wirelab/testbed/instrument"
	"wirelab/workloads"
)

// startInstruments starts every instrument; all are ready when it returns.
func (e *execution) startInstruments(ctx context.Context) error {
	target := e.target()
	for _, i := range e.setup.Instruments {
		t := target
		t.Name = i.Name
		running, err := i.Config.Start(ctx, t)
		if err != nil {
			return fmt.Errorf("start instrument %q: %w", i.Name, err)
		}
		e.running = append(e.running, runningInstrument{i, running})
	}
	return nil
}

// target describes the run to an instrument.
func (e *execution) target() instrument.Target {
	t := instrument.Target{
		Dir: e.writer.Path(), Nodes: map[string]instrument.Namespace{}, Devices: map[string][2]instrument.Device{},
		T0NS: e.t0, StartS: e.window().Start, EndS: e.window().End, Record: e.writer.Sample,
	}
	for _, a := range e.actors {
		t.Processes = append(t.Processes, instrument.Process{
			Name: a.process.Name(), Node: a.role.Node, PID: a.process.PID(), Kind: a.workload.Kind,
		})
	}
	if e.bed == nil {
		return t
	}
	for _, h := range e.bed.Hosts() {
		t.Nodes[h.Name()] = h
	}
	topo := e.setup.Topology
	devices := e.bed.Devices()
	for _, l := range topo.Links {
		name := topo.Name + "." + l.Name
		t.Links = append(t.Links, instrument.Link{Name: name, Backend: l.Backend, Forward: l.Forward.Rate, Reverse: l.Reverse.Rate})
		if d, ok := devices[l.Name]; ok {
			t.Devices[name] = [2]instrument.Device{device(d[0]), device(d[1])}
		}
	}
	if s := e.bed.Session(); s != nil {
		t.Counters = s.Counters
		if light, ok := s.(emul.Sampler); ok {
			t.CountersLight = light.CountersLight
		}
		t.Processes = append(t.Processes, instrument.Process{Name: "forwarder", Kind: "forward", PID: s.PID()})
	}
	return t
}

func device(d testbed.Device) instrument.Device {
	return instrument.Device{Node: d.Node, Name: d.Name, Index: d.Index, Facing: d.Facing}
}

// found is what one instrument found.
type found struct {
	name   string
	result instrument.Result
	err    error
}

// stopInstruments stops all and returns what they found.
func (e *execution) stopInstruments() []found {
	out := make([]found, 0, len(e.running))
	for _, i := range e.running {
		r, err := i.running.Stop()
		out = append(out, found{i.Name, r, err})
	}
	e.running = nil
	return out
}

// collect turns what actors and instruments said into the run's record.
func (e *execution) collect(instruments []found) error {
	if err := e.collectActors(); err != nil {
		return err
	}
	for i := range e.setup.Workloads {
		e.reduce(&e.setup.Workloads[i])
	}
	units := e.units()
	for _, f := range instruments {
		if f.err != nil {
			return fmt.Errorf("instrument %q: %w", f.name, f.err)
		}
		e.addInstrument(f, units)
	}
	slices.SortStableFunc(e.run.Values, func(a, b results.Value) int { return strings.Compare(a.Metric, b.Metric) })
	return nil
}

func (e *execution) collectActors() error {
	for _, a := range e.actors {
		r := a.process.Result()
		e.run.Actors = append(e.run.Actors, r.ActorRecord(a.process.Name(), a.role.Node, a.log))
		for _, n := range r.Notes {
			e.note("%s: %s", a.process.Name(), n)
		}
		switch r.Status {
		case results.StatusFailed, results.StatusCrashed, results.StatusUnsupported:
			return a.failure(r)
		case results.StatusPartial, results.StatusNoData:
			e.worsen(r.Status)
		}
	}
	return nil
}

// worsen keeps the worse of the run's status and s.
func (e *execution) worsen(s results.Status) {
	order := []results.Status{results.StatusOK, results.StatusPartial, results.StatusNoData}
	if slices.Index(order, s) > slices.Index(order, e.run.Status) {
		e.run.Status = s
	}
}

// reduce adds a workload's metrics.
func (e *execution) reduce(w *experiments.NamedWorkload) {
	in := workloads.Reduction{Window: e.window()}
	for _, a := range e.actors {
		if a.workload == w {
			in.Samples = append(in.Samples, a.samples...)
			in.Records = append(in.Records, a.process.Result().Records...)
		}
	}
	out := w.Config.Reduce(in)
	units := map[string]string{}
	for _, m := range w.Config.Metrics() {
		units[m.Name] = m.Unit
	}
	e.add(w.Name, out.Values, units)
	if len(out.Flows) > 0 {
		if e.run.Flows == nil {
			e.run.Flows = map[string][]map[string]float64{}
		}
		e.run.Flows[w.Name] = out.Flows
	}
	if out.Status == results.StatusNoData {
		e.run.Error = strings.TrimPrefix(e.run.Error+"; "+w.Name+" delivered no data in the measurement window", "; ")
	}
	e.worsen(out.Status)
	for _, n := range out.Notes {
		e.note("%s: %s", w.Name, n)
	}
	for _, reason := range out.Invalid {
		e.invalid("%s: %s", w.Name, reason)
	}
	for _, r := range in.Records {
		// What a flow reported stands in run.Flows already.
		if r.Flow < 0 {
			e.run.Records = append(e.run.Records, r)
		}
	}
}

func (e *execution) add(name string, values map[string]float64, units map[string]string) {
	for _, metric := range slices.Sorted(maps.Keys(values)) {
		e.run.Values = append(e.run.Values, results.Value{Metric: name + "." + metric, Value: values[metric], Unit: units[metric]})
	}
}

// units maps "NAME.METRIC" of instruments and links to units.
func (e *execution) units() map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, n := range e.r.exp.Metrics {
		out[n.Name] = map[string]string{}
		for _, m := range n.Metrics {
			out[n.Name][m.Name] = m.Unit
		}
	}
	return out
}

func (e *execution) addInstrument(f found, units map[string]map[string]string) {
	e.add(f.name, f.result.Values, units[f.name])
	for _, link := range slices.Sorted(maps.Keys(f.result.Links)) {
		e.add(link, f.result.Links[link], units[link])
	}
	e.run.Events = append(e.run.Events, f.result.Events...)
	e.run.Records = append(e.run.Records, f.result.Records...)
	for _, n := range f.result.Notes {
		e.note("%s: %s", f.name, n)
	}
	for _, reason := range f.result.Invalid {
		e.invalid("%s", reason)
	}
	if e.run.Overhead == nil {
		e.run.Overhead = map[string]float64{}
	}
	e.run.Overhead[f.name] = f.result.CPUSeconds / (e.setup.Warmup + e.setup.Duration).Seconds()
}

// offloadLinks is for how many links the offloads of the devices are recorded.
const offloadLinks = 32

// offloads records which offloads are on at the nodes' ends of the links: they
// decide what a packet is.
func (e *execution) offloads() {
	devices := e.bed.Devices()
	for i := range e.run.Links[:min(len(e.run.Links), offloadLinks)] {
		rec := &e.run.Links[i]
		for _, d := range devices[e.setup.Topology.Links[i].Name] {
			on, err := instrument.Offloads(e.bed.Host(d.Node), d.Name)
			if err != nil {
				e.note("link %s: %v", rec.Name, err)
				return
			}
			if rec.Offloads == nil {
				rec.Offloads = map[string][]string{}
			}
			rec.Offloads[d.Node+":"+d.Name] = on
		}
	}
}

// linkRecords lays the asked impairments beside the calibration.
func linkRecords(t *testbed.Topology, calibrated map[string]results.Calibration) []results.LinkRecord {
	out := make([]results.LinkRecord, 0, len(t.Links))
	for _, l := range t.Links {
		rec := results.LinkRecord{
			Name: t.Name + "." + l.Name, Between: [2]string{l.A, l.B}, Backend: l.Backend, Why: l.Why, Mode: string(l.Mode),
			Forward: results.DirectionAsked{Text: l.Forward.String()}, Reverse: results.DirectionAsked{Text: l.Reverse.String()},
		}
		if l.Backend == "software" {
			rec.Unit = "segment"
		}
		if c, ok := calibrated[l.Name]; ok {
			rec.Calibration = &c
		}
		out = append(out, rec)
	}
	return out
}
