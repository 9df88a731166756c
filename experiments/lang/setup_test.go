package lang

import (
	"strings"
	"testing"
	"time"

	"wirelab/emul/unit"
	"wirelab/testbed"
)

// TestGraph builds a graph of node, link and dynamic blocks.
func TestGraph(t *testing.T) {
	x := mustLoad(t, plain+`
locals {
  names = ["a", "b", "c"]
}
topology "graph" "lab" {}
node "hub" {
  kind    = "router"
  sysctls = { "net.ipv4.tcp_ecn" = 1 }
}
dynamic "node" {
  for_each = local.names
  iterator = it
  labels   = [it.value]
  content {}
}
dynamic "link" {
  for_each = { for i, n in local.names : n => i + 1 }
  labels   = ["to_${link.key}"]
  content {
    between = [link.key, "hub:${link.key}0"]
    rate    = "${link.value * 10}mbit"
    delay   = "${link.value}ms"
    loss    = "1%"
    queue   = "50pkt"
    dynamic "reverse" {
      for_each = link.value == 2 ? [1] : []
      content {
        rate = null
        loss = "0%"
        delay = "7ms"
      }
    }
  }
}
workload "tcp" "t" {
  from = "a"
  to   = "c"
  peer = node.c.ipv4
}
check "named" {
  condition = result.lab.to_b.reverse.utilization_ratio > 0
}
`)
	s := x.Points[0].Repetitions[0]
	top := s.Topology
	if top.Name != "lab" || len(top.Nodes) != 4 || len(top.Links) != 3 {
		t.Fatalf("topology: %+v", top)
	}
	if n := top.Nodes[0]; n.Name != "hub" || n.Kind != testbed.KindRouter || n.Sysctls["net.ipv4.tcp_ecn"] != "1" {
		t.Errorf("hub: %+v", n)
	}
	b := top.Links[1]
	if b.Name != "to_b" || b.A != "b" || b.B != "hub" || b.PortB != "b0" || b.PortA != "" ||
		b.Forward.Rate != 20_000_000 || b.Forward.Delay != 2*time.Millisecond || b.Forward.Loss != 0.01 || b.Forward.Queue.Packets != 50 ||
		b.Reverse.Rate != 20_000_000 || b.Reverse.Delay != 7*time.Millisecond || b.Reverse.Loss != 0 {
		t.Errorf("link: %+v", b)
	}
	addresses, err := top.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Workloads[0].Config.(*fakeTraffic); w.Peer == "" || w.Peer != addresses["c"][0].IPv4.Addr().String() {
		t.Errorf("peer %q, addresses %v", w.Peer, addresses["c"])
	}
}

// TestDefaultQueue gives a rate without a queue one product of the longest
// path that a workload uses across it.
func TestDefaultQueue(t *testing.T) {
	x := mustLoad(t, plain+`
node "a" {}
node "r" { kind = "router" }
node "b" {}
node "c" {}
link "slow" {
  between = ["a", "r"]
  rate    = "100mbit"
  rtt     = "10ms"
}
link "far" {
  between = ["r", "b"]
  rtt     = "30ms"
}
link "idle" {
  between = ["r", "c"]
  rate    = "1mbit"
}
link "given" {
  between = ["r", "d"]
  rate    = "1mbit"
  queue   = "9pkt"
}
node "d" {}
workload "tcp" "t" {
  from = "a"
  to   = "b"
}
`)
	links := x.Points[0].Repetitions[0].Topology.Links
	if q := links[0].Forward.Queue; q != (unit.Limit{Bytes: 500_000}) || links[0].Reverse.Queue != q {
		t.Errorf("queue of the path: %v", q)
	}
	if q := links[2].Forward.Queue; q != (unit.Limit{Bytes: 2 * 1514}) {
		t.Errorf("least queue: %v", q)
	}
	if q := links[3].Forward.Queue; q != (unit.Limit{Packets: 9}) {
		t.Errorf("given queue: %v", q)
	}
	notes := strings.Join(x.Notes, "\n")
	for _, want := range []string{
		"net.slow forward, net.slow reverse: default queue = 1 BDP of the path = 100mbit x 40ms / 8 = 500000 B",
		"net.idle forward, net.idle reverse: default queue = 2 full packets = 3028 B",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in:\n%s", want, notes)
		}
	}
	if strings.Contains(notes, "net.given") {
		t.Errorf("a note about a queue that was given:\n%s", notes)
	}
}

// TestShortQueueIsNoted: less than one product under loss-based flows.
func TestShortQueueIsNoted(t *testing.T) {
	text := func(queue, congestion string) string {
		return plain + `
topology "dumbbell" "net" {
  bottleneck {
    rate  = "100mbit"
    rtt   = "40ms"
    queue = "` + queue + `"
  }
}
workload "tcp" "t" {
  from       = "left1"
  to         = "right1"
  congestion = "` + congestion + `"
}
`
	}
	for _, c := range []struct{ queue, congestion, want string }{
		{"10ms", "reno", "is 0.25 BDP of the path (100mbit x 40ms / 8 = 500000 B): one flow of loss-based reno will keep the link about 89 % busy"},
		{"10ms", "bbr", ""},
		{"40ms", "reno", ""},
		{"4KiB", "reno", "about 76 % busy"}, // 75 % without any queue
	} {
		notes := strings.Join(mustLoad(t, text(c.queue, c.congestion)).Notes, "\n")
		if c.want == "" && notes != "" || !strings.Contains(notes, c.want) {
			t.Errorf("queue %s under %s: notes %q, want %q", c.queue, c.congestion, notes, c.want)
		}
	}
}

// TestNestedBlocks decodes blocks inside blocks with labels, pointers, lists
// and defaults.
func TestNestedBlocks(t *testing.T) {
	x := mustLoad(t, plain+`
topology "dumbbell" "net" {}
workload "tcp" "t" {
  from   = "left1"
  to     = "right1"
  cores  = [1, 2]
  pacing = "2.5gbit"
  arrivals {
    load = "30%"
    size "small" {
      mean = "1KiB"
    }
    dynamic "size" {
      for_each = ["big"]
      labels   = [size.value]
      content {
        mean   = "1MiB"
        weight = 0.5
      }
    }
  }
}
`)
	w := x.Points[0].Repetitions[0].Workloads[0].Config.(*fakeTraffic)
	a := w.Arrivals
	if a == nil || a.Load != 0.3 || len(a.Sizes) != 2 || a.Sizes[0].Name != "small" || a.Sizes[0].Weight != nil || a.Sizes[1].Weight == nil || *a.Sizes[1].Weight != 0.5 || a.Sizes[1].Mean != 1<<20 {
		t.Errorf("arrivals: %+v", a)
	}
	if w.Pacing != 2_500_000_000 || len(w.Cores) != 2 || w.Congestion != "cubic" {
		t.Errorf("workload: %+v", w)
	}
}

// TestSweptTiming lets duration and warmup depend on the point.
func TestSweptTiming(t *testing.T) {
	x := mustLoad(t, `
experiment "x" {
  duration = sweep.long ? "20s" : "10s"
  warmup   = "${local.w}s"
}
locals {
  w = sweep.long ? 2 : 1
}
sweep {
  long = [false, true]
}
`)
	for i, want := range []time.Duration{10 * time.Second, 20 * time.Second} {
		if s := x.Points[i].Repetitions[0]; s.Duration != want || s.Warmup != want/10 {
			t.Errorf("%s: %s after %s", x.Points[i].ID, s.Duration, s.Warmup)
		}
	}
}

// TestEqualFilesGiveEqualTexts: what a run depends on does not change with
// where the file lies, with comments, or with the order of blocks' attributes.
func TestEqualFilesGiveEqualTexts(t *testing.T) {
	a := mustLoad(t, buffers)
	b := mustLoad(t, "# a comment\n"+strings.ReplaceAll(buffers, "hosts = 2 # on each side\n", "hosts = 1 + 1\n"))
	for i := range a.Points {
		if string(a.Points[i].Repetitions[0].Text) != string(b.Points[i].Repetitions[0].Text) {
			t.Errorf("point %s differs", a.Points[i].ID)
		}
	}
	c := mustLoad(t, strings.ReplaceAll(buffers, "[0.25, 0.5, 1, 2, 4]", "[0.25, 0.5, 1, 2, 8]"))
	for i := range a.Points {
		if same := string(a.Points[i].Repetitions[0].Text) == string(c.Points[i].Repetitions[0].Text); same != (i < 4) {
			t.Errorf("point %s: equal texts %v after the last value was edited", a.Points[i].ID, same)
		}
	}
}

// TestFunctions evaluates our own functions.
func TestFunctions(t *testing.T) {
	for expr, want := range map[string]string{
		`bdp("100mbit", "40ms", 0.5)`: "250000B",
		`bdp("100mbit", "40ms")`:      "500000B",
		`bdp("1mbit", "1ms", 1)`:      "3028B",
		`rate("2.5gbit")`:             "2500000000",
		`seconds("40ms")`:             "0.04",
		`bytes("64KiB")`:              "65536",
		`jain([1, 1, 2])`:             "0.8888888889",
		`sum([1, [2, 3]], 4)`:         "10",
		`ratio(1, 4)`:                 "0.25",
		`median([3, 1, 2, 10])`:       "2.5",
		`quantile([0, 10], 0.25)`:     "2.5",
		`min(3, [1, 2])`:              "1",
		`max([3, 1]...)`:              "3",
		`mean([1, 2])`:                "1.5",
		`count([1 > 0, 1 < 0])`:       "1",
		`length("abc") + length([1])`: "4",
		`join("-", [for i in range(3) : format("%d", i)])`: "0-1-2",
		`try(jsondecode("{"), "bad")`:                      "bad",
		`can(tonumber("x"))`:                               "false",
		`alltrue([true, 1 > 0]) && !anytrue([false])`:      "true",
	} {
		x := mustLoad(t, plain+"\nsweep {\n  v = ["+expr+"]\n}\n")
		if got := x.Points[0].Sweep[0].Text; got != want {
			t.Errorf("%s = %s, want %s", expr, got, want)
		}
	}
	for _, expr := range []string{`ratio(1, 0)`, `median([])`, `median("x")`, `jain([0, 0])`, `quantile([1], 2)`, `bdp("x", "1ms")`, `sum()`} {
		if x, _, _ := loadText(t, plain+"\nsweep {\n  v = ["+expr+"]\n}\n"); x != nil {
			t.Errorf("%s is no error: %+v", expr, x.Points[0].Sweep)
		}
	}
}
