package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"wirelab/emul"
	"wirelab/emul/unit"
	"wirelab/testbed"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func nodeRows(t *testbed.Topology) [][]string {
	addresses, err := t.Addresses()
	var rows [][]string
	for i, n := range t.Nodes {
		if i == maxNodes {
			rows = append(rows, []string{fmt.Sprintf("and %d more nodes", len(t.Nodes)-i)})
			break
		}
		var list []string
		if err == nil {
			for _, a := range addresses[n.Name] {
				list = append(list, a.IPv4.String())
				if a.IPv6.IsValid() {
					list = append(list, a.IPv6.String())
				}
			}
		}
		if len(list) > 4 {
			list = append(list[:4], "…")
		}
		rows = append(rows, []string{n.Name, string(n.Kind), strings.Join(list, " ")})
	}
	return rows
}

// linkLines tell every link: its ends, backend and stages. Links that do the
// same are told together.
func linkLines(t *testbed.Topology) []string {
	type group struct {
		what  []string // backend, then the stages
		links []string
	}
	groups := map[string]*group{}
	var order []*group
	for i := range t.Links {
		l := &t.Links[i]
		what := describeLink(l)
		key := strings.Join(what, "\n")
		g := groups[key]
		if g == nil {
			g = &group{what: what}
			groups[key] = g
			order = append(order, g)
		}
		g.links = append(g.links, fmt.Sprintf("%s (%s -> %s)", l.Name, l.A, l.B))
	}
	var out []string
	for n, g := range order {
		if n == maxLinks {
			out = append(out, fmt.Sprintf("and %d more kinds of links", len(order)-n))
			break
		}
		word := "link"
		if len(g.links) > 1 {
			word = "links"
		}
		names := strings.Join(g.links[:min(len(g.links), 4)], ", ")
		if len(g.links) > 4 {
			names += fmt.Sprintf(" and %d more", len(g.links)-4)
		}
		out = append(out, word+" "+names+": "+g.what[0])
		out = append(out, g.what[1:]...)
	}
	return out
}

// describeLink tells who carries a link and what it does.
func describeLink(l *testbed.Link) []string {
	head := "a bare veth pair"
	switch {
	case l.Backend != testbed.BackendNone && l.Backend != "":
		head = fmt.Sprintf("backend %s, %s", l.Backend, l.Why)
	case !l.Forward.IsZero() || !l.Reverse.IsZero():
		head = "backend not yet chosen"
	}
	if l.MTU != 0 && l.MTU != 1500 {
		head += fmt.Sprintf(", MTU %d", l.MTU)
	}
	if l.Mode == emul.ModePrecise {
		head += ", precise"
	}
	if l.Forward.IsZero() && l.Reverse.IsZero() {
		return []string{head}
	}
	rtt := l.Forward.Delay + l.Reverse.Delay
	out := []string{head}
	if l.Forward == l.Reverse {
		out = append(out, "  both ways: "+stages(l.Forward, rtt, l.MTU))
	} else {
		out = append(out, "  forward: "+stages(l.Forward, rtt, l.MTU), "  reverse: "+stages(l.Reverse, rtt, l.MTU))
	}
	return append(out, "  RTT added = "+milliseconds(rtt))
}

// milliseconds writes a delay as an operator would: "50 ms".
func milliseconds(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.6f", float64(d)/float64(time.Millisecond)), "0"), ".") + " ms"
}

// stages tells what a direction does, in the order a packet meets it.
func stages(i emul.Impairment, rtt time.Duration, mtu int) string {
	var parts []string
	if i.Rate > 0 {
		aqm := i.AQM
		if aqm == "" {
			aqm = "droptail"
		}
		parts = append(parts, fmt.Sprintf("queue %s %s%s", i.Queue, aqm, inBDP(i, rtt, mtu)), "rate "+i.Rate.String())
	}
	if i.Loss > 0 {
		parts = append(parts, "loss "+i.Loss.String())
	}
	if i.Delay > 0 || i.Jitter > 0 {
		// The emulator's own words, from "delay" on.
		text := emul.Impairment{Delay: i.Delay, Jitter: i.Jitter, Distribution: i.Distribution, JitterReorders: i.JitterReorders}.String()
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " | ")
}

// inBDP relates a queue to the bandwidth-delay product of its link.
func inBDP(i emul.Impairment, rtt time.Duration, mtu int) string {
	if mtu == 0 {
		mtu = 1500
	}
	size, ok := i.Queue.BytesAt(i.Rate, mtu+14)
	if !ok {
		return ""
	}
	drain := time.Duration(float64(size) * 8 / float64(i.Rate) * float64(time.Second))
	text := fmt.Sprintf("%d B, at most %s", int64(size), milliseconds(drain.Round(time.Microsecond)))
	if i.Queue.Bytes > 0 {
		text = "at most " + milliseconds(drain.Round(time.Microsecond))
	}
	if product := float64(i.Rate) / 8 * rtt.Seconds(); product > 0 {
		text += fmt.Sprintf(", %.3g x %s x %s / 8 of this link", float64(size)/product, i.Rate, milliseconds(rtt))
	}
	return " (" + text + ")"
}

// pathRTT is the propagation delay there and back between two nodes.
func pathRTT(t *testbed.Topology, from, to string) (time.Duration, bool) {
	if t == nil || from == "" || to == "" {
		return 0, false
	}
	hops, err := t.Path(from, to)
	if err != nil {
		return 0, false
	}
	crossed := map[string]bool{}
	for _, h := range hops {
		crossed[h.Link] = true
	}
	var rtt time.Duration
	for i := range t.Links {
		if l := &t.Links[i]; crossed[l.Name] {
			rtt += l.Forward.Delay + l.Reverse.Delay
		}
	}
	return rtt, true
}

// given lists the attributes of a workload that have a value, in the order of
// its struct, without the placement that the plan shows by itself.
func given(config any) string {
	v := reflect.Indirect(reflect.ValueOf(config))
	if v.Kind() != reflect.Struct {
		return ""
	}
	var parts []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("hcl"), ",")
		if f.Anonymous || name == "" || v.Field(i).IsZero() {
			continue
		}
		parts = append(parts, name+"="+valueText(v.Field(i)))
	}
	return strings.Join(parts, " ")
}

func valueText(v reflect.Value) string {
	v = reflect.Indirect(v)
	switch x := v.Interface().(type) {
	case time.Duration, unit.Rate, unit.Size, unit.Ratio, unit.Limit:
		return fmt.Sprint(x)
	case string:
		return x
	}
	b, err := json.Marshal(v.Interface())
	if err != nil {
		return "…"
	}
	if len(b) > 80 {
		return string(b[:77]) + "…"
	}
	return string(b)
}
