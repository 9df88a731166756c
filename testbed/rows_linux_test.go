package testbed

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/testbed/netns"
)

// star is a router with n hosts around it.
func star(n int) Topology {
	t := Topology{Name: "star", Nodes: nodes(KindRouter, "hub")}
	for i := range n {
		name := fmt.Sprintf("h%d", i)
		t.Nodes = append(t.Nodes, nodes(KindHost, name)...)
		t.Links = append(t.Links, Link{Name: "l" + name, A: name, B: "hub"})
	}
	return t
}

// Devices have the address that was asked for at creation, however often they
// are made. WIRELAB_CREATIONS sets how many (default 100).
func TestManyCreationsKeepTheirAddress(t *testing.T) {
	t.Parallel()
	needRoot(t)
	want := 100
	if s := os.Getenv("WIRELAB_CREATIONS"); s != "" {
		var err error
		if want, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	made := 0
	for made < want {
		tb, err := Up(t.Context(), star(25), testOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range tb.hosts {
			handle, err := h.Netlink()
			if err != nil {
				t.Fatal(err)
			}
			for _, end := range tb.layout.links[i] {
				d := tb.layout.devices[end.link][end.side]
				l, err := handle.LinkByName(d.name)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(l.Attrs().HardwareAddr, d.mac) {
					t.Errorf("device %s of %s has the address %v, asked %v", d.name, h.name, l.Attrs().HardwareAddr, d.mac)
				}
				made++
			}
			handle.Close()
		}
		if err := tb.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d devices", made)
}

// A server binds to every address, IPv6 too, at its first try once Up has
// returned: no address is tentative.
func TestServersBindAtOnce(t *testing.T) {
	t.Parallel()
	tb := bringUp(t, star(4))
	var slowest time.Duration
	for _, h := range tb.Hosts() {
		for _, a := range h.Addresses() {
			for _, ip := range []netip.Addr{a.IPv4.Addr(), a.IPv6.Addr()} {
				if !ip.IsValid() || ip.Is6() && !tb.v6 {
					continue
				}
				start := time.Now()
				if err := h.Do(func() error {
					l, err := net.Listen("tcp", netip.AddrPortFrom(ip, 0).String())
					if err != nil {
						return err
					}
					return l.Close()
				}); err != nil {
					t.Errorf("%s on %s: %v", ip, h.Name(), err)
				}
				slowest = max(slowest, time.Since(start))
			}
		}
		handle, err := h.Netlink()
		if err != nil {
			t.Fatal(err)
		}
		defer handle.Close()
		list, err := handle.AddrList(nil, netlink.FAMILY_V6)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if a.Flags&unix.IFA_F_TENTATIVE != 0 {
				t.Errorf("%s on %s is tentative", a.IPNet, h.Name())
			}
		}
	}
	t.Logf("the slowest bind took %v", slowest)
}

// Impairments are not on a sender's own device: the nodes' devices have no
// queueing discipline beyond what a veth has.
func TestSendersAreNotShaped(t *testing.T) {
	t.Parallel()
	topo := impaired(chainOf(3), emul.Impairment{Rate: 10e6, Delay: 5 * time.Millisecond, Loss: 0.01})
	tb := bringUp(t, topo)
	for _, h := range tb.Hosts() {
		handle, err := h.Netlink()
		if err != nil {
			t.Fatal(err)
		}
		defer handle.Close()
		links, err := handle.LinkList()
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			list, err := handle.QdiscList(l)
			if err != nil {
				t.Fatal(err)
			}
			for _, q := range list {
				if q.Type() != "noqueue" {
					t.Errorf("%s of %s has the queueing discipline %s", l.Attrs().Name, h.Name(), q.Type())
				}
			}
		}
	}
}

// A namespace of somebody else is told by the doctor and outlives clean.
func TestForeignNamespacesAreLeftAlone(t *testing.T) {
	needRoot(t)
	ns, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if _, err := Clean(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error {
		_, err := net.InterfaceByName("lo")
		return err
	}); err != nil {
		t.Errorf("the namespace is gone: %v", err)
	}
}
