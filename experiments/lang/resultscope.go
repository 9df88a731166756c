package lang

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"wirelab/results"
)

// resultScope is what result.* may name: the union over all points of what
// workloads, instruments and links declare.
type resultScope struct {
	names map[string]*resultName
	order []string
}

// resultName is one name after "result.".
type resultName struct {
	kind    string // "tcp", "core_load"; of a topology "topology"
	flows   bool   // has per-flow metrics
	metrics map[string]results.MetricDef
	order   []string
	// links of a topology, nil for everything else. Each has the metrics of its
	// forward direction and, below "reverse", of the other.
	links     map[string]*resultLink
	linkOrder []string
	// open is set where a mistake hides what the name declares.
	open bool
}

type resultLink struct{ forward, reverse []results.MetricDef }

func newResultScope() resultScope { return resultScope{names: map[string]*resultName{}} }

// name returns the entry of a name, made at its first use.
func (s *resultScope) name(name, kind string) *resultName {
	n := s.names[name]
	if n == nil {
		n = &resultName{kind: kind, metrics: map[string]results.MetricDef{}}
		s.names[name] = n
		s.order = append(s.order, name)
	}
	return n
}

func (n *resultName) add(defs []results.MetricDef) {
	for _, d := range defs {
		if _, known := n.metrics[d.Name]; !known {
			n.order = append(n.order, d.Name)
			n.metrics[d.Name] = d
		}
		n.flows = n.flows || d.PerFlow
	}
}

func (n *resultName) addLink(name string, forward, reverse []results.MetricDef) {
	if n.links == nil {
		n.links = map[string]*resultLink{}
	}
	l := n.links[name]
	if l == nil {
		n.links[name] = &resultLink{forward: forward, reverse: reverse}
		n.linkOrder = append(n.linkOrder, name)
		return
	}
	// A sweep may give a link a rate in some points only.
	if len(forward) > len(l.forward) {
		l.forward = forward
	}
	if len(reverse) > len(l.reverse) {
		l.reverse = reverse
	}
}

// named lists the definitions for the manifest.
func (s *resultScope) named() []results.NamedMetrics {
	var out []results.NamedMetrics
	for _, name := range s.order {
		n := s.names[name]
		for _, link := range n.linkOrder {
			l := n.links[link]
			out = append(out,
				results.NamedMetrics{Name: name + "." + link, Kind: "link", Metrics: l.forward},
				results.NamedMetrics{Name: name + "." + link + ".reverse", Kind: "link", Metrics: l.reverse})
		}
		if n.links != nil {
			continue
		}
		m := results.NamedMetrics{Name: name, Kind: n.kind}
		for _, metric := range n.order {
			m.Metrics = append(m.Metrics, n.metrics[metric])
		}
		out = append(out, m)
	}
	return out
}

// wrong tells which step of a path after "result." is unknown and what stands
// there instead; ok is true for a right path. A path may end early.
func (s *resultScope) wrong(path []string) (step int, what string, known []string, ok bool) {
	if len(path) == 0 {
		return 0, "", nil, true
	}
	n := s.names[path[0]]
	if n == nil {
		return 0, "names of workloads, instruments and topologies", s.order, false
	}
	if len(path) == 1 || n.open {
		return 0, "", nil, true
	}
	if n.links != nil {
		return n.wrongLink(path)
	}
	if n.flows && path[1] == "flows" && len(path) > 3 && path[2] == "*" {
		var names []string
		for _, m := range n.order {
			if n.metrics[m].PerFlow {
				names = append(names, m)
			}
		}
		return 3, "metrics of each flow of " + path[0], names, slices.Contains(names, path[3])
	}
	if _, known := n.metrics[path[1]]; known || path[1] == "flows" && n.flows {
		return 0, "", nil, true
	}
	names := n.order
	if n.flows {
		names = append(slices.Clone(names), "flows")
	}
	return 1, "metrics of " + path[0], names, false
}

func (n *resultName) wrongLink(path []string) (int, string, []string, bool) {
	l := n.links[path[1]]
	if l == nil {
		return 1, "links of " + path[0], n.linkOrder, false
	}
	if len(path) == 2 {
		return 0, "", nil, true
	}
	defs, at := l.forward, 2
	if path[2] == "reverse" {
		if len(path) == 3 {
			return 0, "", nil, true
		}
		defs, at = l.reverse, 3
	}
	var names []string
	for _, d := range defs {
		if d.Name == path[at] {
			return 0, "", nil, true
		}
		names = append(names, d.Name)
	}
	if at == 2 {
		names = append(names, "reverse")
	}
	return at, "metrics of " + strings.Join(path[:at], "."), names, false
}

// unknown is the object result before any run: every number unknown. Of large
// topologies only the links that the file names are included.
func (s *resultScope) unknown(named map[string]bool) cty.Value {
	number := cty.UnknownVal(cty.Number)
	attrs := map[string]cty.Value{}
	for name, n := range s.names {
		if n.open {
			attrs[name] = cty.DynamicVal
			continue
		}
		object := map[string]cty.Value{}
		for _, link := range n.linkOrder {
			if named == nil || named[name+"."+link] {
				object[link] = n.links[link].unknown()
			}
		}
		flow := map[string]cty.Type{}
		for metric, def := range n.metrics {
			object[metric] = number
			if def.PerFlow {
				flow[metric] = cty.Number
			}
		}
		if n.flows {
			object["flows"] = cty.UnknownVal(cty.List(cty.Object(flow)))
		}
		attrs[name] = cty.ObjectVal(object)
	}
	return cty.ObjectVal(attrs)
}

func (l *resultLink) unknown() cty.Value {
	direction := func(defs []results.MetricDef) map[string]cty.Value {
		m := map[string]cty.Value{}
		for _, d := range defs {
			m[d.Name] = cty.UnknownVal(cty.Number)
		}
		return m
	}
	m := direction(l.forward)
	m["reverse"] = cty.ObjectVal(direction(l.reverse))
	return cty.ObjectVal(m)
}

// checkResults tells unknown names in all result.* references of a list.
func (l *loader) checkResults(refs []ref) {
	for _, r := range refs {
		if r.root != "result" {
			continue
		}
		if step, what, known, ok := l.scope.wrong(r.path); !ok {
			name := "result." + strings.Join(r.path[:step+1], ".")
			l.report(fault(r.stepRange(step), "Unknown reference "+name, "%s", remedy(r.path[step], what, known)))
		}
	}
}

// namedLinks are the "topology.link" that references name; nil means that a
// reference names none, so that all are needed.
func namedLinks(refs []ref) map[string]bool {
	named := map[string]bool{}
	for _, r := range refs {
		if r.root != "result" {
			continue
		}
		if len(r.path) < 2 {
			return nil
		}
		named[r.path[0]+"."+r.path[1]] = true
	}
	return named
}

// resultTree is a run's values as nested maps.
type resultTree map[string]any // resultTree or float64 or []map[string]float64

func treeOf(run *results.Run) resultTree {
	root := resultTree{}
	for _, v := range run.Values {
		at := root
		steps := strings.Split(v.Metric, ".")
		for _, s := range steps[:len(steps)-1] {
			next, ok := at[s].(resultTree)
			if !ok {
				next = resultTree{}
				at[s] = next
			}
			at = next
		}
		at[steps[len(steps)-1]] = v.Value
	}
	for name, flows := range run.Flows {
		at, ok := root[name].(resultTree)
		if !ok {
			at = resultTree{}
			root[name] = at
		}
		at["flows"] = flows
	}
	return root
}

func (t resultTree) value() cty.Value {
	attrs := make(map[string]cty.Value, len(t))
	for name, x := range t {
		switch v := x.(type) {
		case resultTree:
			attrs[name] = v.value()
		case float64:
			attrs[name] = cty.NumberFloatVal(v)
		case []map[string]float64:
			attrs[name] = flowsValue(v)
		}
	}
	return cty.ObjectVal(attrs)
}

// flowsValue is a tuple: flows need not have the same metrics.
func flowsValue(flows []map[string]float64) cty.Value {
	list := make([]cty.Value, len(flows))
	for i, f := range flows {
		attrs := make(map[string]cty.Value, len(f))
		for name, v := range f {
			attrs[name] = cty.NumberFloatVal(v)
		}
		list[i] = cty.ObjectVal(attrs)
	}
	return cty.TupleVal(list)
}

// missing returns the first referenced value that a run does not have, "" when
// it has all.
func (t resultTree) missing(refs []ref) string {
	for _, r := range refs {
		if r.root != "result" {
			continue
		}
		at := t
		for i, step := range r.path {
			x, ok := at[step]
			if !ok {
				return strings.Join(r.path[:i+1], ".")
			}
			if at, ok = x.(resultTree); !ok {
				break
			}
		}
	}
	return ""
}

// openName marks a name whose declaration is hidden by a mistake.
func (s *resultScope) openName(name, kind string) { s.name(name, kind).open = true }

// subjects are the refs of expressions, joined; nil expressions are left out.
func refsOf(expressions ...hcl.Expression) []ref {
	var out []ref
	for _, e := range expressions {
		if e != nil {
			out = append(out, usesOf(e, aggregateNames).refs...)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
