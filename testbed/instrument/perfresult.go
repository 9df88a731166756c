package instrument

import (
	"fmt"

	"wirelab/results"
)

// perfTotal is what an event counted over several groups, extrapolated where
// it took turns with others.
type perfTotal struct {
	value            float64
	enabled, running float64 // ns
	backwards        bool
}

// add takes one group's counts at both edges.
func (t *perfTotal) add(first, last perfCount) {
	if last.value < first.value || last.enabled < first.enabled || last.running < first.running {
		t.backwards = true
		return
	}
	value, enabled, running := float64(last.value-first.value), float64(last.enabled-first.enabled), float64(last.running-first.running)
	if running > 0 && running < enabled {
		value *= enabled / running
	}
	t.value += value
	t.enabled += enabled
	t.running += running
}

// ratio is the share of the time that the event was counted.
func (t *perfTotal) ratio() float64 {
	if t.enabled == 0 {
		return 1 // nothing ran, so nothing was missed
	}
	return min(1, t.running/t.enabled)
}

// totals sums the events of one subject.
func (m *perfRun) totals(s *perfSubject) []perfTotal {
	out := make([]perfTotal, len(m.events))
	for _, g := range s.groups {
		if g.first == nil || g.last == nil {
			continue
		}
		for k, i := range g.events {
			out[i].add(g.first[k], g.last[k])
		}
	}
	return out
}

// Stop implements [Running].
func (m *perfRun) Stop() (Result, error) {
	err := m.loop.finish()
	m.close()
	r := Result{Values: map[string]float64{}, CPUSeconds: m.loop.cpuSeconds()}
	if err != nil {
		return r, fmt.Errorf("count perf events: %w", err)
	}
	if len(m.subjects) == 0 {
		r.Notes = append(r.Notes, "perf had no process to observe")
		return r, nil
	}
	sum := make([]perfTotal, len(m.events))
	per := make([][]perfTotal, len(m.subjects))
	for k, s := range m.subjects {
		per[k] = m.totals(s)
		for i, t := range per[k] {
			sum[i].value += t.value
			sum[i].enabled += t.enabled
			sum[i].running += t.running
			sum[i].backwards = sum[i].backwards || t.backwards
		}
	}
	statuses := m.judge(sum)
	for i, e := range m.events {
		r.Events = append(r.Events, results.EventStatus{Instrument: m.target.Name, Event: e.name, Status: statuses[i], RunningRatio: m.runningRatio(i, sum)})
		if m.config.Required && !usable(statuses[i], sum[i]) {
			r.Invalid = append(r.Invalid, fmt.Sprintf("required perf event %s is %s", e.name, statuses[i]))
		}
	}
	if m.loop.window() == 0 {
		return r, nil
	}
	r.Values = m.values(sum, statuses)
	for k, s := range m.subjects {
		r.Records = append(r.Records, results.Record{Actor: s.name, Role: "perf", Flow: -1, Name: m.target.Name, Values: m.values(per[k], statuses)})
	}
	return r, nil
}

func (m *perfRun) runningRatio(i int, sum []perfTotal) float64 {
	if m.failed[i] != "" {
		return 0
	}
	return sum[i].ratio()
}

// values are the metrics of one subject, of the usable events only.
func (m *perfRun) values(totals []perfTotal, statuses []string) map[string]float64 {
	v := make(map[string]float64, len(totals))
	for i, e := range m.events {
		if !usable(statuses[i], totals[i]) {
			continue
		}
		v[e.metric()] = totals[i].value
		if e.inSeconds() {
			v[e.metric()] = totals[i].value / 1e9
		}
	}
	ratios(v)
	return v
}

// usable says whether an event of the status has a value.
func usable(status string, t perfTotal) bool {
	return status == eventOK || status == eventMultiplexed && t.ratio() >= perfLeast
}

// judge gives every event its status: of opening it, of its share of the
// counters' time, and of what it says beside the others.
func (m *perfRun) judge(sum []perfTotal) []string {
	byName := make(map[string]perfTotal, len(sum))
	for i, e := range m.events {
		if m.failed[i] == "" {
			byName[e.name] = sum[i]
		}
	}
	out := make([]string, len(sum))
	for i, e := range m.events {
		switch {
		case m.failed[i] != "":
			out[i] = m.failed[i]
		case sum[i].backwards || implausible(e, sum[i], byName):
			out[i] = eventImplausible
		case sum[i].ratio() < perfWhole:
			out[i] = eventMultiplexed
		default:
			out[i] = eventOK
		}
	}
	return out
}

// plausibleSlack is how much two events that took turns may contradict each
// other.
const plausibleSlack = 1.05

// implausible finds counts that no processor makes; virtual machines are known
// to give counters that open, run and stay at zero.
func implausible(e perfEvent, t perfTotal, others map[string]perfTotal) bool {
	if e.kind == perfSoftware || e.kind == perfRaw || t.running < 1e6 {
		return false // under a millisecond proves nothing
	}
	switch e.name {
	case "cycles", "ref-cycles":
		return t.value == 0 || t.value > t.enabled*20 // 20 GHz
	case "instructions":
		c, ok := others["cycles"]
		return t.value == 0 || ok && c.value > 0 && t.value > 16*c.value
	case "branches":
		i, ok := others["instructions"]
		return t.value == 0 || ok && i.value > 0 && t.value > plausibleSlack*i.value
	}
	for _, r := range perfRatios() {
		if !r.complement || r.part != e.name {
			continue
		}
		if whole, ok := others[r.whole]; ok && t.value > plausibleSlack*whole.value {
			return true
		}
	}
	return false
}
