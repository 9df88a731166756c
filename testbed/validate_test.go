package testbed

import (
	"fmt"
	"strings"
	"testing"
)

// pair is a valid topology to be spoilt.
func pair() Topology {
	return Topology{Name: "pair", Nodes: []Node{{Name: "a", Kind: KindHost}, {Name: "r", Kind: KindRouter}, {Name: "b", Kind: KindHost}},
		Links: []Link{{Name: "ar", A: "a", B: "r"}, {Name: "rb", A: "r", B: "b"}}}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*Topology)
		want  string // "path: summary", "?" for warnings; "" for none
	}{
		{"valid", func(*Topology) {}, ""},
		{"one node", func(t *Topology) { t.Nodes, t.Links = t.Nodes[:1], nil }, ""},
		{"no nodes", func(t *Topology) { *t = Topology{} }, ": No nodes"},
		{"two nodes of a name", func(t *Topology) { t.Nodes[2].Name = "a" }, `node.a.name: Two nodes are called "a"`},
		{"bad node name", func(t *Topology) { t.Nodes[2].Name = "a b" }, `node.a b.name: Bad node name "a b"`},
		{"long node name", func(t *Topology) { t.Nodes[2].Name = strings.Repeat("x", 64) }, "Bad node name"},
		{"bad kind", func(t *Topology) { t.Nodes[1].Kind = "switch" }, `node.r.kind: Unknown kind "switch" of node r`},
		{"two links of a name", func(t *Topology) { t.Links[1].Name = "ar" }, `link.ar.name: Two links are called "ar"`},
		{"bad link name", func(t *Topology) { t.Links[1].Name = "-x" }, `link.-x.name: Bad link name "-x"`},
		{"unknown node", func(t *Topology) { t.Links[1].B = "B" }, `link.rb.between: Unknown node "B"`},
		{"itself", func(t *Topology) { t.Links[1].B = "r" }, "link.rb.between: Link rb joins r with itself"},
		{"mtu", func(t *Topology) { t.Links[0].MTU = 10 }, "link.ar.mtu: Bad MTU"},
		{"no link", func(t *Topology) { t.Links = t.Links[:1] }, "node.b.name: Node b has no link"},
		{"two parts", func(t *Topology) {
			t.Nodes = append(t.Nodes, Node{Name: "x", Kind: KindHost}, Node{Name: "y", Kind: KindHost})
			t.Links = append(t.Links, Link{Name: "xy", A: "x", B: "y"})
		}, "node.x.name: The network is in separate parts"},
		{"two links on one port", func(t *Topology) { t.Links[0].PortB, t.Links[1].PortA = "eth0", "eth0" }, "link.rb.between: Two links on one port: eth0 of r"},
		{"ports apart", func(t *Topology) { t.Links[0].PortB, t.Links[1].PortA = "eth0", "eth1" }, ""},
		{"bad port", func(t *Topology) { t.Links[0].PortB = "all" }, `link.ar.between: Bad port name "all"`},
		{"long port", func(t *Topology) { t.Links[0].PortB = "sixteen-letters-" }, "Bad port name"},
		{"sysctl of the host", func(t *Topology) { t.Nodes[0].Sysctls = map[string]string{"vm.swappiness": "1"} }, `node.a.sysctls: Bad sysctl "vm.swappiness" of node a`},
		{"sysctl with a way out", func(t *Topology) { t.Nodes[0].Sysctls = map[string]string{"net./../vm": "1"} }, "Bad sysctl"},
		{"host in the middle", func(t *Topology) { t.Nodes[1].Kind = KindHost }, "node.r.kind: Host r does not forward?"},
		{"parallel links", func(t *Topology) { t.Links = append(t.Links, Link{Name: "ra", A: "r", B: "a"}) }, ""},
		{"loop of bridges", func(t *Topology) {
			for _, n := range []string{"s1", "s2", "s3"} {
				t.Nodes = append(t.Nodes, Node{Name: n, Kind: KindBridge})
			}
			t.Links = append(t.Links, Link{Name: "s12", A: "s1", B: "s2"}, Link{Name: "s23", A: "s2", B: "s3"},
				Link{Name: "s31", A: "s3", B: "s1"}, Link{Name: "rs", A: "r", B: "s1"})
		}, "link.s31.between: A loop of bridges"},
		{"too many routers", func(t *Topology) { *t = chainOf(300) }, "Too many routers in a row?"},
		{"many routers", func(t *Topology) { *t = chainOf(256) }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			topo := pair()
			c.spoil(&topo)
			problems := topo.Validate()
			if c.want == "" {
				if len(problems) > 0 {
					t.Errorf("problems %v", problems)
				}
				return
			}
			if len(problems) == 0 {
				t.Fatal("no problem")
			}
			p := problems[0]
			got := strings.Join(p.Path, ".") + ": " + p.Summary
			if p.Warning {
				got += "?"
			}
			if !strings.Contains(got, c.want) || p.Detail == "" {
				t.Errorf("problem %q (%s), want %q", got, p.Detail, c.want)
			}
		})
	}
}

// Several mistakes are told at once.
func TestValidateTellsAll(t *testing.T) {
	topo := pair()
	topo.Nodes[0].Kind, topo.Links[1].B, topo.Links[0].Name = "x", "nobody", "?"
	if p := topo.Validate(); len(p) != 3 {
		t.Errorf("%d problems: %v", len(p), p)
	}
}

func BenchmarkValidate(b *testing.B) {
	topo := chainOf(1001)
	for b.Loop() {
		topo.Validate()
	}
}

func TestAddresses(t *testing.T) {
	topo := pair()
	topo.Nodes = append(topo.Nodes, Node{Name: "s", Kind: KindBridge}, Node{Name: "c", Kind: KindHost}, Node{Name: "d", Kind: KindHost})
	topo.Links = append(topo.Links, Link{Name: "rs", A: "r", B: "s"}, Link{Name: "sc", A: "s", B: "c"}, Link{Name: "sd", A: "d", B: "s"})
	topo.Links[1].MTU = 1279
	got, err := topo.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	want := "map[a:[{ar 10.0.0.1/30 fd57:4c00::1/64}] " +
		"b:[{rb 10.0.0.6/30 invalid Prefix}] " +
		"c:[{sc 10.0.0.10/29 fd57:4c00:0:2::2/64}] " +
		"d:[{sd 10.0.0.11/29 fd57:4c00:0:2::3/64}] " +
		"r:[{ar 10.0.0.2/30 fd57:4c00::2/64} {rb 10.0.0.5/30 invalid Prefix} {rs 10.0.0.9/29 fd57:4c00:0:2::1/64}]]"
	// The segment of the bridge takes a /29, aligned to one.
	if s := fmt.Sprint(got); s != want {
		t.Errorf("\n got %s\nwant %s", s, want)
	}
}

// No two addresses are equal and no two subnets overlap, in any graph.
func TestAddressesAreUnique(t *testing.T) {
	topo := chainOf(1200)
	all, err := topo.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for node, list := range all {
		for _, a := range list {
			for _, p := range []string{a.IPv4.String(), a.IPv6.String()} {
				if other := seen[p]; other != "" {
					t.Errorf("%s and %s have %s", node, other, p)
				}
				seen[p] = node
			}
		}
	}
	if len(seen) != 2*2*1199 {
		t.Errorf("%d addresses, want %d", len(seen), 4*1199)
	}
}

func TestAddressSpace(t *testing.T) {
	if u := units(2); u != 1 {
		t.Errorf("2 members take %d units", u)
	}
	for n := 1; n < 5000; n++ {
		if u := units(n); u*4 < uint32(n+2) || u > 1 && u*2 >= uint32(n+2) || u&(u-1) != 0 {
			t.Fatalf("%d members take %d units of 4 addresses", n, u)
		}
	}
}

func TestDeviceNames(t *testing.T) {
	for link, fits := range map[string]bool{"bottleneck": true, "fifteen-letters": true, "sixteen-letters-": false, "vf": false,
		"lo": false, "all": false, "br0": false, strings.Repeat("x", 63): false} {
		name := deviceName(link)
		if len(name) > maxDeviceName || (name == link) != fits {
			t.Errorf("link %s has the device %s", link, name)
		}
		if !portName.MatchString(name) {
			t.Errorf("device name %s is not valid", name)
		}
	}
	if deviceName("access_left1234567") == deviceName("access_left1234568") {
		t.Error("two links have one device name")
	}
	// A port that has the name of another link of the node does not collide.
	topo := pair()
	topo.Links[0].PortB = "rb"
	g, err := newGraph(topo)
	if err != nil {
		t.Fatal(err)
	}
	if n := g.deviceNames(); n[0][1] != "rb" || n[1][0] == "rb" || n[1][1] != "rb" {
		t.Errorf("devices %v", n)
	}
}
