package lang

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"wirelab/emul"
	"wirelab/emul/unit"
	"wirelab/experiments"
	"wirelab/testbed"
)

// wireMTU is the Ethernet frame of a full packet of 1500 bytes.
const wireMTU = 1514

// wireSize is the Ethernet frame of a full packet on a link, in bytes.
func wireSize(k *testbed.Link) int {
	if k.MTU > 0 {
		return k.MTU + wireMTU - 1500
	}
	return wireMTU
}

// way is the path of one workload, with its base RTT.
type way struct {
	workload experiments.NamedWorkload
	hops     []testbed.Hop
	rtt      time.Duration
}

// ways finds the paths of all workloads between two nodes, and tells where
// there is none.
func (a *actorLoader) ways() []way {
	t := a.graph.topology
	if t == nil || a.graph.broken {
		return nil
	}
	type pair struct{ from, to string }
	type found struct {
		hops []testbed.Hop
		err  error
	}
	links := map[string]*testbed.Link{}
	for i := range t.Links {
		links[t.Links[i].Name] = &t.Links[i]
	}
	known := map[pair]found{}
	var out []way
	for _, w := range a.out.workloads {
		p := w.Config.Common()
		if p.From == p.To || !a.graph.has(p.From) || !a.graph.has(p.To) {
			continue
		}
		f, ok := known[pair{p.From, p.To}]
		if !ok {
			f.hops, f.err = t.Path(p.From, p.To)
			known[pair{p.From, p.To}] = f
		}
		if f.err != nil {
			a.sink.add(fault(a.placed[w.Name].where([]string{"to"}), "No way from "+p.From+" to "+p.To, "%s.", capital(f.err.Error())))
			continue
		}
		x := way{workload: w, hops: f.hops}
		for _, h := range f.hops {
			x.rtt += links[h.Link].Forward.Delay + links[h.Link].Reverse.Delay
		}
		out = append(out, x)
	}
	return out
}

// side is one direction of a link.
type side struct {
	link    string
	forward bool
}

func (s side) of(k *testbed.Link) *emul.Impairment {
	if s.forward {
		return &k.Forward
	}
	return &k.Reverse
}

func (s side) String() string {
	if s.forward {
		return s.link + " forward"
	}
	return s.link + " reverse"
}

// sizeQueues gives queues that the file left out one bandwidth-delay product
// of the longest path across them, and notes the formula. The graph may be
// shared with other points, so a changed one is a copy.
func (a *actorLoader) sizeQueues(ways []way) *testbed.Topology {
	t := a.graph.topology
	if t == nil || a.graph.broken {
		return t
	}
	longest := map[side]time.Duration{}
	for _, w := range ways {
		for _, h := range w.hops {
			for _, forward := range []bool{true, false} {
				s := side{h.Link, forward}
				longest[s] = max(longest[s], w.rtt)
			}
		}
	}
	sized := *t
	sized.Links = slices.Clone(t.Links)
	for i := range sized.Links {
		k := &sized.Links[i]
		for n, forward := range []bool{true, false} {
			s := side{k.Name, forward}
			if !a.graph.defaulted[k.Name][n] || s.of(k).Rate == 0 {
				continue
			}
			if rtt, crossed := longest[s]; crossed && a.graph.plain[k.Name] {
				s.of(k).Queue = unit.Limit{Bytes: unit.BDP(s.of(k).Rate, rtt, 1, wireSize(k))}
			}
			a.noteQueue(t.Name, k, s)
		}
	}
	return &sized
}

func (a *actorLoader) noteQueue(topology string, k *testbed.Link, s side) {
	i := s.of(k)
	size := i.Queue.Bytes
	rtt := time.Duration(math.Round(float64(size) * 8 / float64(i.Rate) * 1e9)).Round(time.Microsecond)
	text := fmt.Sprintf("default queue = 1 BDP of the path = %s x %s / 8 = %d B", i.Rate, rtt, int64(size))
	if size <= unit.Size(2*wireSize(k)) {
		text = fmt.Sprintf("default queue = 2 full packets = %d B, because 1 BDP of the path is less; give queue if that is too short for bursts", int64(size))
	}
	a.notes.add(text, topology+"."+s.String())
}

// backoff is the share of its window that a loss-based congestion control
// keeps after a loss (RFC 5681; RFC 9438, section 4.6).
var backoff = map[string]float64{"reno": 0.5, "cubic": 0.7, "bic": 0.8, "htcp": 0.5, "westwood": 0.5, "scalable": 0.875}

// lintQueues notes queues that are too short for the loss-based flows that
// cross them.
func (a *actorLoader) lintQueues(t *testbed.Topology, ways []way) {
	type crossing struct {
		flows int
		rtt   time.Duration
		keep  float64
		names []string
	}
	seen := map[side]*crossing{}
	var order []side
	for _, w := range ways {
		congestion, flows := lossBased(w.workload.Config)
		keep, ok := backoff[congestion]
		if !ok {
			continue
		}
		for _, h := range w.hops {
			s := side{h.Link, h.Forward}
			c := seen[s]
			if c == nil {
				c = &crossing{keep: 1}
				seen[s] = c
				order = append(order, s)
			}
			c.flows += flows
			c.rtt = max(c.rtt, w.rtt)
			c.keep = min(c.keep, keep)
			if !slices.Contains(c.names, congestion) {
				c.names = append(c.names, congestion)
			}
		}
	}
	for _, s := range order {
		c := seen[s]
		i := slices.IndexFunc(t.Links, func(k testbed.Link) bool { return k.Name == s.link })
		k := &t.Links[i]
		size, ok := s.of(k).Queue.BytesAt(s.of(k).Rate, wireSize(k))
		product := float64(s.of(k).Rate) / 8 * c.rtt.Seconds()
		if !ok || product <= 0 || float64(size) >= product*0.999 {
			continue
		}
		share := float64(size) / product
		a.notes.add(fmt.Sprintf("queue of %d B is %.2g BDP of the path (%s x %s / 8 = %.0f B): %s of loss-based %s will keep the link about %.0f %% busy",
			int64(size), share, s.of(k).Rate, c.rtt, product, flowsText(c.flows), strings.Join(c.names, " and "), 100*sawtooth(share, c.keep, c.flows)), t.Name+"."+s.String())
	}
}

func flowsText(n int) string {
	if n == 1 {
		return "one flow"
	}
	return fmt.Sprintf("%d flows", n)
}

// lossBased reads the attributes congestion and flows of a workload, where it
// has them.
func lossBased(config any) (congestion string, flows int) {
	v := reflect.Indirect(reflect.ValueOf(config))
	if v.Kind() != reflect.Struct {
		return "", 0
	}
	flows = 1
	for _, f := range schemaOf(v.Type()).fields {
		x := v.FieldByIndex(f.index)
		switch {
		case f.name == "congestion" && x.Kind() == reflect.String:
			congestion = x.String()
		case f.name == "flows" && x.CanInt():
			flows = max(1, int(x.Int()))
		}
	}
	return congestion, flows
}

// sawtooth is the utilization of a link whose queue holds share bandwidth-delay
// products, under flows that keep the part keep of their window after a loss
// and then grow linearly. n flows that are not in step need 1/sqrt(n) of the
// queue of one (Appenzeller, Keslassy, McKeown, SIGCOMM 2004).
func sawtooth(share, keep float64, flows int) float64 {
	b := share * math.Sqrt(float64(flows))
	low := keep * (1 + b)
	if low >= 1 {
		return 1
	}
	// Below one product of window the RTT is the base RTT and the throughput
	// the window; above it the link is full and an RTT lasts as long as the
	// window is large. Times are in base RTTs, windows in products.
	below := 1 - low
	full := ((1+b)*(1+b) - 1) / 2
	return (below*(1+low)/2 + full) / (below + full)
}
