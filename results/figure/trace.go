package figure

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"wirelab/results"
)

// Reader reads the time series of a run.
type Reader func(run *results.Run) iter.Seq2[results.Sample, error]

// Trace is one time series, reduced for drawing: the extremes of equal time
// slices, so that no peak is lost.
type Trace struct {
	Run    *results.Run
	Path   string // "cubic.rtt_s"
	Flow   int32
	actor  string
	slices []slice
	span   float64 // seconds that the slices cover
}

// slice holds the extremes of one time slice and when they were met.
type slice struct {
	n          int
	minT, minV float64
	maxT, maxV float64
}

func newTrace(run *results.Run, path, actor string, flow int32, span float64, count int) *Trace {
	return &Trace{Run: run, Path: path, Flow: flow, actor: actor, slices: make([]slice, count), span: span}
}

func (t *Trace) add(at, v float64) {
	i := int(at / t.span * float64(len(t.slices)))
	if at < 0 || i < 0 || i > len(t.slices) {
		return
	}
	s := &t.slices[min(i, len(t.slices)-1)]
	if s.n == 0 || v < s.minV {
		s.minT, s.minV = at, v
	}
	if s.n == 0 || v > s.maxV {
		s.maxT, s.maxV = at, v
	}
	s.n++
}

// points returns what is to be drawn, by time: one point per slice whose
// extremes are equal, else two.
func (t *Trace) points() [][2]float64 {
	var out [][2]float64
	for _, s := range t.slices {
		switch {
		case s.n == 0:
		case s.minT == s.maxT:
			out = append(out, [2]float64{s.minT, s.minV})
		case s.minT < s.maxT:
			out = append(out, [2]float64{s.minT, s.minV}, [2]float64{s.maxT, s.maxV})
		default:
			out = append(out, [2]float64{s.maxT, s.maxV}, [2]float64{s.minT, s.minV})
		}
	}
	return out
}

// Coarser returns the trace reduced to at most count slices.
func (t *Trace) Coarser(count int) *Trace {
	if count <= 0 || count >= len(t.slices) {
		return t
	}
	c := newTrace(t.Run, t.Path, t.actor, t.Flow, t.span, count)
	for _, q := range t.points() {
		c.add(q[0], q[1])
	}
	return c
}

// maxFlows bounds the flows of one path that are drawn singly.
const maxFlows = 32

// everyFlow in a path asks for the flows of a workload, one by one.
const everyFlow = ".flows[*]"

func perFlow(path string) bool { return strings.Contains(path, everyFlow+".") }

// Matches reports whether samples of an actor and metric belong to a path: the
// actor is the path's name, a role of it, or the forward direction of a link.
func Matches(path, actor, metric string) bool {
	name, m := cut(path)
	if m != metric {
		return false
	}
	name = strings.TrimSuffix(name, everyFlow)
	if actor == name {
		return true
	}
	rest, ok := strings.CutPrefix(actor, name+".")
	return ok && rest != "reverse" && !strings.Contains(rest, ".")
}

// Pick says which paths samples of an actor and metric belong to.
type Pick func(actor, metric string) []string

// PickPaths picks those of the given paths that match.
func PickPaths(paths []string) Pick {
	return func(actor, metric string) []string {
		var out []string
		for _, p := range paths {
			if Matches(p, actor, metric) {
				out = append(out, p)
			}
		}
		return out
	}
}

// traceKey tells series apart; roles of a workload are different actors.
type traceKey struct {
	path, actor string
	flow        int32
}

// Collect reads the samples of a run once and keeps those that are picked, each
// series reduced to count time slices of a load of span seconds. Traces come by
// path and flow. Where a path has a series of the whole (flow -1), its flows
// are left out unless the path asks for them (NAME.flows[*].METRIC); flows
// beyond the first 32 of a path are counted in dropped.
func Collect(run *results.Run, read Reader, pick Pick, span float64, count int) (traces []*Trace, dropped int, err error) {
	found := map[traceKey]*Trace{}
	flows := map[string]int{}
	picked := map[[2]string][]string{}
	for s, err := range read(run) {
		if err != nil {
			return nil, 0, fmt.Errorf("read series of run %d: %w", run.Index, err)
		}
		paths, known := picked[[2]string{s.Actor, s.Metric}]
		if !known {
			paths = pick(s.Actor, s.Metric)
			picked[[2]string{s.Actor, s.Metric}] = paths
		}
		for _, path := range paths {
			if s.Flow < 0 && perFlow(path) {
				continue
			}
			k := traceKey{path, s.Actor, s.Flow}
			t, ok := found[k]
			if !ok {
				if flows[path]++; flows[path] <= maxFlows || s.Flow < 0 {
					t = newTrace(run, path, s.Actor, s.Flow, span, count)
				} else {
					dropped++
				}
				found[k] = t
			}
			if t != nil {
				t.add(s.Time, s.Value)
			}
		}
	}
	for k, t := range found {
		if t == nil || len(t.points()) == 0 {
			continue
		}
		if whole := found[traceKey{k.path, k.actor, -1}]; k.flow >= 0 && whole != nil && !perFlow(k.path) {
			continue // the path means the whole, which has a line of its own
		}
		traces = append(traces, t)
	}
	slices.SortFunc(traces, func(a, b *Trace) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.actor, b.actor), cmp.Compare(a.Flow, b.Flow))
	})
	return traces, dropped, nil
}
