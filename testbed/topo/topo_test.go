package topo

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"wirelab/emul"
	"wirelab/emul/attr"
	"wirelab/emul/unit"
	"wirelab/testbed"
)

func ptr[T any](v T) *T { return &v }

// names lists nodes and links: "left1 router_left: bottleneck(router_left-router_right)".
func names(t testbed.Topology) string {
	var nodes, links []string
	for _, n := range t.Nodes {
		nodes = append(nodes, string(n.Kind)[:1]+":"+n.Name)
	}
	for _, l := range t.Links {
		links = append(links, l.Name+"("+l.A+"-"+l.B+")")
	}
	return strings.Join(nodes, " ") + " / " + strings.Join(links, " ")
}

func TestGraphs(t *testing.T) {
	for _, c := range []struct {
		graph Graph
		want  string
	}{
		{&Dumbbell{Hosts: 2}, "r:router_left r:router_right h:left1 h:left2 h:right1 h:right2 / bottleneck(router_left-router_right) " +
			"access_left1(left1-router_left) access_left2(left2-router_left) access_right1(router_right-right1) access_right2(router_right-right2)"},
		{&Chain{Hops: 3}, "h:left r:router1 r:router2 h:right / hop1(left-router1) hop2(router1-router2) hop3(router2-right)"},
		{&Chain{Hops: 2, Middle: "bridge"}, "h:left b:bridge1 h:right / hop1(left-bridge1) hop2(bridge1-right)"},
		{&Chain{Hops: 1}, "h:left h:right / hop1(left-right)"},
		{&Star{Hosts: 3}, "r:hub h:host1 h:host2 h:host3 / spoke1(host1-hub) spoke2(host2-hub) spoke3(host3-hub)"},
		{&Star{Hosts: 2, Hub: "bridge"}, "b:hub h:host1 h:host2 / spoke1(host1-hub) spoke2(host2-hub)"},
		{&ParkingLot{Hops: 2}, "r:router1 r:router2 r:router3 h:long_source h:long_sink h:source1 h:sink1 h:source2 h:sink2 / " +
			"bottleneck1(router1-router2) bottleneck2(router2-router3) access_long_source(long_source-router1) access_long_sink(router3-long_sink) " +
			"access_source1(source1-router1) access_sink1(router2-sink1) access_source2(source2-router2) access_sink2(router3-sink2)"},
		{&Mesh{Routers: 3}, "r:router1 r:router2 r:router3 h:host1 h:host2 h:host3 / access1(host1-router1) access2(host2-router2) access3(host3-router3) " +
			"mesh_1_2(router1-router2) mesh_1_3(router1-router3) mesh_2_3(router2-router3)"},
	} {
		topo, problems := c.graph.Build("net")
		if len(problems) > 0 {
			t.Errorf("%T: %v", c.graph, problems)
		}
		if got := names(topo); got != c.want || topo.Name != "net" {
			t.Errorf("%T %q:\n got %s\nwant %s", c.graph, topo.Name, got, c.want)
		}
		if problems := topo.Validate(); len(problems) > 0 {
			t.Errorf("%T: %v", c.graph, problems)
		}
	}
}

// Every kind is documented and builds as it comes from New, once its defaults
// are filled in.
func TestKinds(t *testing.T) {
	for _, k := range Kinds() {
		if k.Name == "" || len(k.Doc) < 40 || k.New() == nil {
			t.Errorf("kind %+v is not complete", k)
		}
	}
}

func TestBadNumbers(t *testing.T) {
	for _, c := range []struct {
		graph Graph
		path  string
	}{
		{&Dumbbell{}, "hosts"}, {&Dumbbell{Hosts: 1e6}, "hosts"}, {&Chain{Hops: -1}, "hops"}, {&Star{Hosts: 1}, "hosts"},
		{&ParkingLot{}, "hops"}, {&Mesh{Routers: 1e4}, "routers"}, {&Chain{Hops: 1, Middle: "host"}, "middle"}, {&Star{Hosts: 2, Hub: "x"}, "hub"},
		{&Dumbbell{Hosts: 1, Bottleneck: &LinkSpec{MTU: 1}}, "bottleneck.mtu"},
		{&Dumbbell{Hosts: 1, Access: &LinkSpec{Forward: &Direction{Loss: ptr[unit.Ratio](2)}}}, "access.forward.loss"},
	} {
		_, problems := c.graph.Build("net")
		if len(problems) == 0 || strings.Join(problems[0].Path, ".") != c.path {
			t.Errorf("%+v: problems %v, want one of %s", c.graph, problems, c.path)
		}
	}
}

const ms = time.Millisecond

func TestResolve(t *testing.T) {
	rate, other := ptr[unit.Rate](100e6), ptr[unit.Rate](10e6)
	bdp := func(r unit.Rate, d time.Duration) unit.Limit { return unit.Limit{Bytes: unit.BDP(r, d, 1, 1514)} }
	for _, c := range []struct {
		name             string
		spec             LinkSpec
		forward, reverse emul.Impairment
	}{
		{"nothing", LinkSpec{}, emul.Impairment{}, emul.Impairment{}},
		{"rtt is halved", LinkSpec{RTT: ptr(40 * ms)}, emul.Impairment{Delay: 20 * ms}, emul.Impairment{Delay: 20 * ms}},
		{"odd rtt", LinkSpec{RTT: ptr(time.Duration(3))}, emul.Impairment{Delay: 1}, emul.Impairment{Delay: 2}},
		{"delay is one way", LinkSpec{Direction: Direction{Delay: ptr(40 * ms)}}, emul.Impairment{Delay: 40 * ms}, emul.Impairment{Delay: 40 * ms}},
		{"queue of one BDP", LinkSpec{Direction: Direction{Rate: rate}, RTT: ptr(40 * ms)},
			emul.Impairment{Rate: 100e6, Delay: 20 * ms, Queue: bdp(100e6, 40*ms)}, emul.Impairment{Rate: 100e6, Delay: 20 * ms, Queue: bdp(100e6, 40*ms)}},
		{"queue of two packets", LinkSpec{Direction: Direction{Rate: rate}},
			emul.Impairment{Rate: 100e6, Queue: unit.Limit{Bytes: 3028}}, emul.Impairment{Rate: 100e6, Queue: unit.Limit{Bytes: 3028}}},
		{"asked queue", LinkSpec{Direction: Direction{Rate: rate, Queue: &unit.Limit{Packets: 9}}},
			emul.Impairment{Rate: 100e6, Queue: unit.Limit{Packets: 9}}, emul.Impairment{Rate: 100e6, Queue: unit.Limit{Packets: 9}}},
		{"overrides", LinkSpec{Direction: Direction{Rate: rate, Loss: ptr[unit.Ratio](0.1)}, RTT: ptr(40 * ms),
			Forward: &Direction{Loss: ptr[unit.Ratio](0), Delay: ptr(5 * ms)},
			Reverse: &Direction{Rate: other, AQM: ptr("droptail")}},
			emul.Impairment{Rate: 100e6, Delay: 5 * ms, Queue: bdp(100e6, 25*ms)},
			emul.Impairment{Rate: 10e6, Delay: 20 * ms, Queue: bdp(10e6, 25*ms), Loss: 0.1, AQM: "droptail"}},
		{"jitter", LinkSpec{Direction: Direction{Delay: ptr(40 * ms), Jitter: ptr(5 * ms), JitterDistribution: ptr("normal"), JitterReorder: ptr(true)}},
			emul.Impairment{Delay: 40 * ms, Jitter: 5 * ms, Distribution: "normal", JitterReorders: true},
			emul.Impairment{Delay: 40 * ms, Jitter: 5 * ms, Distribution: "normal", JitterReorders: true}},
	} {
		forward, reverse, problems := c.spec.Resolve()
		if len(problems) > 0 || forward != c.forward || reverse != c.reverse {
			t.Errorf("%s: %+v / %+v, %v", c.name, forward, reverse, problems)
		}
	}
}

func TestResolveProblems(t *testing.T) {
	for _, c := range []struct {
		name string
		spec LinkSpec
		want []string // paths; "?" marks warnings
	}{
		{"rtt and delay", LinkSpec{RTT: ptr(ms), Direction: Direction{Delay: ptr(ms)}}, []string{"rtt"}},
		{"loss", LinkSpec{Direction: Direction{Loss: ptr[unit.Ratio](1.5)}}, []string{"loss"}},
		{"loss one way", LinkSpec{Reverse: &Direction{Loss: ptr[unit.Ratio](-1)}}, []string{"reverse.loss"}},
		{"jitter", LinkSpec{Direction: Direction{Jitter: ptr(5 * ms), Delay: ptr(4 * ms)}}, []string{"jitter"}},
		{"jitter normal", LinkSpec{Direction: Direction{Jitter: ptr(5 * ms), Delay: ptr(6 * ms), JitterDistribution: ptr("normal")}}, []string{"jitter?"}},
		{"distribution", LinkSpec{Direction: Direction{JitterDistribution: ptr("pareto")}}, []string{"jitter_distribution"}},
		{"queue without rate", LinkSpec{Direction: Direction{Queue: &unit.Limit{Packets: 1}}}, []string{"queue"}},
		{"aqm without rate", LinkSpec{Forward: &Direction{AQM: ptr("codel")}}, []string{"forward.aqm"}},
		{"queue too small", LinkSpec{Direction: Direction{Rate: ptr[unit.Rate](1e6), Queue: &unit.Limit{Bytes: 1000}}}, []string{"queue"}},
		{"mtu", LinkSpec{MTU: 70000}, []string{"mtu"}},
		{"mode", LinkSpec{Mode: "fast"}, []string{"mode"}},
		{"several", LinkSpec{Mode: "fast", MTU: 1, Direction: Direction{Loss: ptr[unit.Ratio](2)}}, []string{"loss", "mtu", "mode"}},
	} {
		_, _, problems := c.spec.Resolve()
		if got := paths(problems); !slices.Equal(got, c.want) {
			t.Errorf("%s: problems at %v, want %v", c.name, got, c.want)
		}
		for _, p := range problems {
			if p.Summary == "" || !strings.HasSuffix(p.Detail, ".") {
				t.Errorf("%s: summary %q, detail %q", c.name, p.Summary, p.Detail)
			}
		}
	}
}

func paths(problems []attr.Problem) []string {
	var out []string
	for _, p := range problems {
		mark := ""
		if p.Warning {
			mark = "?"
		}
		out = append(out, strings.Join(p.Path, ".")+mark)
	}
	return out
}

// The default queue of a bottleneck is a BDP of the whole path.
func TestDefaultQueueOfThePath(t *testing.T) {
	access := &LinkSpec{RTT: ptr(5 * ms)}
	bottleneck := &LinkSpec{RTT: ptr(40 * ms), Direction: Direction{Rate: ptr[unit.Rate](80e6)}}
	for _, c := range []struct {
		graph Graph
		link  string
		rtt   time.Duration
	}{
		{&Dumbbell{Hosts: 1, Bottleneck: bottleneck, Access: access}, "bottleneck", 50 * ms},
		{&ParkingLot{Hops: 3, Bottleneck: bottleneck, Access: access}, "bottleneck2", 130 * ms},
		{&Chain{Hops: 4, Link: bottleneck}, "hop3", 160 * ms},
		{&Star{Hosts: 3, Link: bottleneck}, "spoke1", 80 * ms},
		{&Mesh{Routers: 3, Link: bottleneck, Access: access}, "mesh_1_3", 50 * ms},
	} {
		topo, problems := c.graph.Build("net")
		if len(problems) > 0 {
			t.Errorf("%T: %v", c.graph, problems)
		}
		i := slices.IndexFunc(topo.Links, func(l testbed.Link) bool { return l.Name == c.link })
		if i < 0 {
			t.Errorf("%T has no link %s", c.graph, c.link)
			continue
		}
		if got, want := topo.Links[i].Forward.Queue, (unit.Limit{Bytes: unit.Size(10e6 * c.rtt.Seconds())}); got != want {
			t.Errorf("%T: the queue of %s is %v, want %v", c.graph, c.link, got, want)
		}
	}
}

func ExampleDumbbell() {
	rate, rtt := unit.Rate(100e6), 40*time.Millisecond
	d := Dumbbell{Hosts: 1, Bottleneck: &LinkSpec{Direction: Direction{Rate: &rate}, RTT: &rtt}}
	t, _ := d.Build("net")
	for _, l := range t.Links {
		fmt.Printf("%s joins %s and %s: %v\n", l.Name, l.A, l.B, l.Forward)
	}
	// Output:
	// bottleneck joins router_left and router_right: 100mbit, queue 500000B droptail, delay 20ms
	// access_left1 joins left1 and router_left: none
	// access_right1 joins router_right and right1: none
}
