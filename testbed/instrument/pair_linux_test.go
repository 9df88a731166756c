package instrument

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"wirelab/testbed/netns"
)

// pair is two nodes joined by a bare veth, left (10.9.0.1) and right
// (10.9.0.2), each with a device "eth0".
type pair struct{ left, right *netns.NS }

func newPair(t *testing.T) *pair {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making network namespaces needs root")
	}
	p := &pair{}
	for _, ns := range []**netns.NS{&p.left, &p.right} {
		made, err := netns.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = made.Close() })
		*ns = made
	}
	if err := p.join(); err != nil {
		t.Fatal(err)
	}
	return p
}

// join makes the veth and brings it up with its addresses.
func (p *pair) join() error {
	h, err := netlink.NewHandleAt(p.left.Handle())
	if err != nil {
		return err
	}
	defer h.Close()
	err = h.LinkAdd(&netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{Name: "eth0"}, PeerName: "eth0", PeerNamespace: netlink.NsFd(p.right.FD()),
	})
	if err != nil {
		return err
	}
	for ns, address := range map[*netns.NS]string{p.left: "10.9.0.1/24", p.right: "10.9.0.2/24"} {
		h, err := netlink.NewHandleAt(ns.Handle())
		if err != nil {
			return err
		}
		defer h.Close()
		l, err := h.LinkByName("eth0")
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := h.AddrAdd(l, a); err != nil {
			return err
		}
		if err := h.LinkSetUp(l); err != nil {
			return err
		}
	}
	return nil
}

// target observes both nodes and their link.
func (p *pair) target(t *testing.T) (Target, *samples) {
	target, s := shortTarget(0, time.Hour)
	target.Dir = t.TempDir()
	target.Nodes = map[string]Namespace{"left": p.left, "right": p.right}
	target.Links = []Link{{Name: "net.wire", Backend: "none"}}
	target.Devices = map[string][2]Device{"net.wire": {
		{Node: "left", Name: "eth0", Facing: "right"}, {Node: "right", Name: "eth0", Facing: "left"},
	}}
	return target, s
}

// udp opens a socket at the right and one at the left that is connected to it.
func (p *pair) udp(t *testing.T) (from net.Conn, to net.PacketConn) {
	t.Helper()
	var config net.ListenConfig
	err := p.right.Do(func() (err error) {
		to, err = config.ListenPacket(context.Background(), "udp4", "10.9.0.2:0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = to.Close() })
	err = p.left.Do(func() (err error) {
		from, err = net.Dial("udp4", to.LocalAddr().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = from.Close() })
	return from, to
}

// send sends n datagrams of size bytes one after the other, each received
// before the next is sent. A fresh veth may lose its first packets: they are
// sent again.
func send(t *testing.T, from net.Conn, to net.PacketConn, n, size int) {
	t.Helper()
	b := make([]byte, size)
	for i := range n {
		b[0] = byte(i)
		received := make(chan struct{})
		go func() {
			defer close(received)
			in := make([]byte, size)
			for {
				if _, _, err := to.ReadFrom(in); err != nil || in[0] == b[0] {
					return
				}
			}
		}()
		poll(t, "a datagram", func() bool {
			if _, err := from.Write(b); err != nil {
				t.Error(err)
				return true
			}
			select {
			case <-received:
				return true
			case <-time.After(time.Second):
				return false
			}
		})
	}
}
