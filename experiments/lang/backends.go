package lang

import (
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"wirelab/emul"
	"wirelab/emul/unit"
	"wirelab/testbed"
)

// chooseBackends decides per link who enforces its impairments.
func (g *graphLoader) chooseBackends() {
	if len(g.opts.Backends) == 0 || checkEmulation(g.emulation, hcl.Range{}) != nil {
		return
	}
	for i := range g.t.Links {
		k := &g.t.Links[i]
		emulation := g.emulation
		if k.Emulation != "" {
			emulation = k.Emulation
			if x := checkEmulation(emulation, g.placeOf([]string{"link", k.Name, "emulation"})); x != nil {
				g.sink.add(x)
				continue
			}
		}
		name, why, err := testbed.ChooseBackend(*k, emulation, g.opts.Backends)
		if err != nil {
			g.refused(*k, emulation, err)
			continue
		}
		k.Backend, k.Why = name, why
	}
}

// refused tells every field of a link that no backend can do: a backend names
// one at a time, so each is made harmless before asking again.
func (g *graphLoader) refused(k testbed.Link, emulation string, err error) {
	for range 16 {
		g.sink.add(g.unsupported(k.Name, err))
		var u *emul.UnsupportedError
		if !errors.As(err, &u) || !harmless(&k, u.Field) {
			return
		}
		if _, _, err = testbed.ChooseBackend(k, emulation, g.opts.Backends); err == nil {
			return
		}
	}
}

// harmless gives a field of both directions a value that every backend can do.
func harmless(k *testbed.Link, field string) bool {
	for _, i := range []*emul.Impairment{&k.Forward, &k.Reverse} {
		switch field {
		case "rate":
			i.Rate = min(i.Rate, 100_000_000)
		case "queue":
			i.Queue = unit.Limit{}
		case "aqm":
			i.AQM = ""
		case "delay":
			i.Delay = 0
		case "jitter":
			i.Jitter = 0
		case "distribution", "jitter_distribution":
			i.Distribution = ""
		case "jitter_reorder":
			i.JitterReorders = false
		case "loss":
			i.Loss = 0
		default:
			return false
		}
	}
	return true
}

// unsupported places a backend's refusal at the attribute it names.
func (g *graphLoader) unsupported(link string, err error) *hcl.Diagnostic {
	at := g.out.links[link]
	d := g.decoders[link]
	var u *emul.UnsupportedError
	if !errors.As(err, &u) {
		return fault(at, "No backend for link "+link, "%s.", capital(err.Error()))
	}
	if d != nil {
		for _, prefix := range [][]string{{}, {link}, {"forward"}, {"reverse"}, {link, "forward"}, {link, "reverse"}} {
			if r, ok := d.at[strings.Join(append(prefix, u.Field), ".")]; ok {
				at = r
				break
			}
		}
	}
	return fault(at, "Not supported: "+u.Field+" of link "+link, "The backend %q cannot do it: %s. %s.", u.Backend, u.Reason, capital(u.Remedy))
}
