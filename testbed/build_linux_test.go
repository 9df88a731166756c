package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"wirelab/emul"
)

// bringUp builds a topology for a test.
func bringUp(t *testing.T, topo Topology) *Testbed {
	t.Helper()
	needRoot(t)
	for _, p := range topo.Validate() {
		if !p.Warning {
			t.Fatal(p)
		}
	}
	tb, err := Up(t.Context(), topo, testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb
}

// echoUDP sends a datagram from one node to an address of another and back.
func echoUDP(tb *Testbed, from, to string, addr netip.Addr) error {
	var server, client *net.UDPConn
	if err := tb.Host(to).Do(func() (err error) {
		server, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, 0)))
		return err
	}); err != nil {
		return err
	}
	defer server.Close()
	if err := tb.Host(from).Do(func() (err error) {
		client, err = net.DialUDP("udp", nil, server.LocalAddr().(*net.UDPAddr))
		return err
	}); err != nil {
		return err
	}
	defer client.Close()
	deadline := time.Now().Add(20 * time.Second)
	if err := errors.Join(server.SetDeadline(deadline), client.SetDeadline(deadline)); err != nil {
		return err
	}
	var buf [64]byte
	if _, err := client.Write([]byte("hello")); err != nil {
		return err
	}
	n, peer, err := server.ReadFromUDPAddrPort(buf[:])
	if err != nil {
		return fmt.Errorf("%s to %s (%s): %w", from, to, addr, err)
	}
	if _, err := server.WriteToUDPAddrPort(buf[:n], peer); err != nil {
		return err
	}
	if _, err = client.Read(buf[:]); err != nil {
		return fmt.Errorf("%s to %s (%s) and back: %w", from, to, addr, err)
	}
	return nil
}

// everyPair checks that every host reaches every address of every other host.
func everyPair(t *testing.T, tb *Testbed) {
	t.Helper()
	for _, from := range tb.Hosts() {
		for _, to := range tb.Hosts() {
			if from == to || from.Kind() != KindHost || to.Kind() == KindBridge {
				continue
			}
			for _, a := range to.Addresses() {
				for _, ip := range []netip.Addr{a.IPv4.Addr(), a.IPv6.Addr()} {
					if !ip.IsValid() {
						continue
					}
					if err := echoUDP(tb, from.Name(), to.Name(), ip); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
}

func nodes(kind NodeKind, names ...string) []Node {
	var list []Node
	for _, n := range names {
		list = append(list, Node{Name: n, Kind: kind})
	}
	return list
}

func TestUpRoutersInARing(t *testing.T) {
	t.Parallel()
	topo := Topology{Name: "ring", Nodes: append(nodes(KindRouter, "r1", "r2", "r3", "r4"), nodes(KindHost, "a", "b", "c")...),
		Links: []Link{{Name: "r12", A: "r1", B: "r2"}, {Name: "r23", A: "r2", B: "r3"}, {Name: "r34", A: "r3", B: "r4"},
			{Name: "r41", A: "r4", B: "r1"}, {Name: "ar1", A: "a", B: "r1"}, {Name: "br3", A: "r3", B: "b"},
			{Name: "cr4", A: "c", B: "r4"}, {Name: "cr2", A: "c", B: "r2"}}}
	everyPair(t, bringUp(t, topo))
}

func TestUpBridges(t *testing.T) {
	t.Parallel()
	topo := Topology{Name: "lan", Nodes: append(append(nodes(KindBridge, "s1", "s2"), nodes(KindHost, "a", "b", "c")...), nodes(KindRouter, "r")...),
		Links: []Link{{Name: "as", A: "a", B: "s1"}, {Name: "bs", A: "s2", B: "b"}, {Name: "ss", A: "s1", B: "s2"},
			{Name: "rs", A: "r", B: "s2"}, {Name: "rc", A: "r", B: "c"}}}
	tb := bringUp(t, topo)
	everyPair(t, tb)
	if a := tb.Host("s1").Addresses(); len(a) != 0 {
		t.Errorf("a bridge has the addresses %v", a)
	}
}

func TestUpImpaired(t *testing.T) {
	t.Parallel()
	topo := impaired(chainOf(4), emul.Impairment{Delay: 3 * time.Millisecond})
	tb := bringUp(t, topo)
	start := time.Now()
	everyPair(t, tb)
	if tb.Session() == nil {
		t.Fatal("there is no session")
	}
	if d := time.Since(start); d < 4*9*time.Millisecond {
		t.Errorf("four echoes over 3 links of 3 ms took %v", d)
	}
	s, err := tb.Session().Counters()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Links) != 3 || s.Links[1].Name != "l2" || s.Links[1].Forward.PacketsOut == 0 {
		t.Errorf("counters %+v", s)
	}
}

// Names, addresses, tags and neighbours are as described, at every device.
func TestUpDevices(t *testing.T) {
	t.Parallel()
	long := "a-link-whose-name-has-sixty-three-characters-which-is-the-limit"
	topo := Topology{Name: "names", Nodes: append(nodes(KindHost, "a", "b"), nodes(KindRouter, "a-node-whose-name-has-sixty-three-characters-which-is-its-limit")...),
		Links: []Link{{Name: long, A: "a", B: "a-node-whose-name-has-sixty-three-characters-which-is-its-limit", MTU: 9000},
			{Name: "vf", B: "b", A: "a-node-whose-name-has-sixty-three-characters-which-is-its-limit", PortB: "eth0",
				Forward: emul.Impairment{Delay: time.Millisecond}, MTU: 1400}}}
	tb := bringUp(t, topo)
	everyPair(t, tb)
	mtu := map[string]int{long: 9000, "vf": 1400}
	for name, ends := range tb.Devices() {
		for _, d := range ends {
			h, err := tb.Host(d.Node).Netlink()
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			l, err := h.LinkByName(d.Name)
			if err != nil {
				t.Errorf("%s has no device %s: %v", d.Node, d.Name, err)
				continue
			}
			if want := tb.layout.devices[slices.IndexFunc(topo.Links, func(l Link) bool { return l.Name == name })][btoi(d == ends[1])].mac; !bytes.Equal(l.Attrs().HardwareAddr, want) {
				t.Errorf("device %s has the address %v, want %v", d.Name, l.Attrs().HardwareAddr, want)
			}
			if l.Attrs().Index != d.Index || l.Attrs().Alias != Alias(tb.RunID(), name) || l.Attrs().MTU != mtu[name] {
				t.Errorf("device %s: index %d, alias %q, MTU %d", d.Name, l.Attrs().Index, l.Attrs().Alias, l.Attrs().MTU)
			}
			list, err := h.NeighList(d.Index, netlink.FAMILY_ALL)
			if err != nil {
				t.Fatal(err)
			}
			permanent := 0
			for _, n := range list {
				if n.State == netlink.NUD_PERMANENT {
					permanent++
				}
			}
			if want := 1 + btoi(tb.v6); permanent != want {
				t.Errorf("device %s knows %d neighbours for ever, want %d: %v", d.Name, permanent, want, list)
			}
		}
	}
	if d := tb.Devices()["vf"]; d[1].Name != "eth0" || d[0].Name == "vf" {
		t.Errorf("link vf has the devices %q and %q", d[0].Name, d[1].Name)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestUpSysctls(t *testing.T) {
	t.Parallel()
	topo := chainOf(3)
	topo.Nodes[0].Sysctls = map[string]string{"net.ipv4.tcp_ecn": "1", "net.ipv4.conf.l1.rp_filter": "2"}
	tb := bringUp(t, topo)
	for key, want := range map[string]string{"net/ipv4/tcp_ecn": "1", "net/ipv4/conf/l1/rp_filter": "2", "net/ipv4/tcp_no_metrics_save": "1", "net/ipv4/ip_forward": "0"} {
		var got [8]byte
		n := 0
		if err := tb.Host("n0").Do(func() error {
			fd, err := unix.Open("/proc/sys/"+key, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			n, err = unix.Read(fd, got[:])
			return err
		}); err != nil || string(got[:max(n-1, 0)]) != want {
			t.Errorf("%s = %q, %v, want %q", key, got[:n], err, want)
		}
	}
}

func TestUpDAD(t *testing.T) {
	t.Parallel()
	topo := chainOf(2)
	topo.Links[0].DAD = true
	tb := bringUp(t, topo)
	if !tb.v6 {
		t.Skip("this kernel has no IPv6")
	}
	everyPair(t, tb) // binding to a tentative address fails
}

func TestUpErrors(t *testing.T) {
	needRoot(t)
	for name, spoil := range map[string]func(*Topology, *Options){
		"sysctl":      func(t *Topology, _ *Options) { t.Nodes[1].Sysctls = map[string]string{"net.ipv4.no_such_key": "1"} },
		"no backend":  func(t *Topology, o *Options) { t.Links[0].Backend = "software"; o.Backend = nil },
		"backend":     func(t *Topology, o *Options) { t.Links[0].Backend = "software"; o.Backend = refusing{} },
		"same device": func(t *Topology, _ *Options) { t.Links[1].PortA, t.Links[0].PortB = "x", "x" },
	} {
		t.Run(name, func(t *testing.T) {
			topo, opt := chainOf(3), testOptions(t)
			spoil(&topo, &opt)
			tb, err := Up(context.Background(), topo, opt)
			if err == nil {
				tb.Close()
				t.Fatal("it came up")
			}
			t.Log(err)
		})
	}
}

// refusing is a backend that joins nothing.
type refusing struct{ emul.Backend }

func (refusing) Name() string { return "refusing" }

func (refusing) Join(context.Context, []emul.Cable) (emul.Session, error) {
	return nil, errors.New("it refuses")
}

// silent is a backend that carries nothing.
type silent struct{ emul.Backend }

func (silent) Name() string { return "silent" }

func (silent) Join(context.Context, []emul.Cable) (emul.Session, error) { return silentSession{}, nil }

type silentSession struct{ emul.Session }

func (silentSession) PID() int              { return 0 }
func (silentSession) Done() <-chan struct{} { return nil }
func (silentSession) Close() error          { return nil }

func TestUpNoAnswer(t *testing.T) {
	needRoot(t)
	topo, opt := chainOf(3), testOptions(t)
	topo.Links[1].Backend = "silent"
	opt.Backend, opt.Ready = silent{}, 300*time.Millisecond
	_, err := Up(context.Background(), topo, opt)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error %v, want a deadline exceeded", err)
	}
	t.Log(err)
}

// hasAddress checks that nobody changed the MAC address of a device.
func hasAddress(t *testing.T, tb *Testbed, e end) {
	t.Helper()
	h, err := tb.hosts[tb.layout.nodeAt(e)].Netlink()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	d := tb.layout.devices[e.link][e.side]
	if l, err := h.LinkByIndex(d.index); err != nil || !bytes.Equal(l.Attrs().HardwareAddr, d.mac) {
		t.Errorf("device %s: %v, %v, want %v", d.name, l, err, d.mac)
	}
}

// Packets of a long chain survive all its routers.
func TestUpDeepChain(t *testing.T) {
	t.Parallel()
	const n = 120
	tb := bringUp(t, chainOf(n))
	for i := range tb.layout.Links {
		for side := range 2 {
			hasAddress(t, tb, end{i, side})
		}
	}
	last := fmt.Sprintf("n%d", n-1)
	a := tb.Host(last).Addresses()[0]
	for _, ip := range []netip.Addr{a.IPv4.Addr(), a.IPv6.Addr()} {
		if err := echoUDP(tb, "n0", last, ip); ip.IsValid() && err != nil {
			t.Error(err)
		}
	}
}

// Nothing is left in the run's directory, and nothing in the host's namespace
// was ever touched.
func TestUpLeavesNothing(t *testing.T) {
	needRoot(t)
	opt := testOptions(t)
	tb, err := Up(t.Context(), chainOf(3), opt)
	if err != nil {
		t.Fatal(err)
	}
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		if strings.HasPrefix(l.Attrs().Alias, "wirelab:test:") {
			t.Errorf("device %s is in the host's namespace", l.Attrs().Name)
		}
	}
	if _, err := os.Readlink(tb.Host("n1").Path()); err != nil {
		t.Error(err)
	}
	if err := tb.Close(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(opt.Journal.Dir()); err != nil || len(entries) != 1 {
		t.Errorf("left are %v, %v, want the journal alone", entries, err)
	}
	if err := tb.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}
