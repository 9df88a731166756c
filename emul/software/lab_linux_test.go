package software_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/emul/software"
)

// TestMain lets the test binary be the forwarding process, and its parent.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "orchestrate" {
		orchestrate()
	}
	if len(os.Args) > 1 && os.Args[1] == "forward" {
		if err := software.ForwardMain(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// space is a network namespace without a name: it ends with its last user.
type space struct {
	netns.NsHandle
	netlink *netlink.Handle
}

// do runs f on a thread of its own inside the namespace; the thread ends
// with it.
func (s space) do(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if err := unix.Setns(int(s.NsHandle), unix.CLONE_NEWNET); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

func newSpace(tb testing.TB) space {
	tb.Helper()
	type result struct {
		h   netns.NsHandle
		err error
	}
	made := make(chan result)
	go func() {
		runtime.LockOSThread()
		h, err := netns.New()
		made <- result{h, err}
	}()
	r := <-made
	check(tb, r.err)
	tb.Cleanup(func() { _ = r.h.Close() })
	h, err := netlink.NewHandleAt(r.h)
	check(tb, err)
	tb.Cleanup(h.Close)
	s := space{r.h, h}
	check(tb, s.up("lo"))
	return s
}

func (s space) up(device string) error {
	l, err := s.netlink.LinkByName(device)
	if err != nil {
		return err
	}
	return s.netlink.LinkSetUp(l)
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func needRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root to make network namespaces")
	}
}

// port implements emul.Port in a namespace.
type port struct {
	space
	device string
	index  int
}

func (p port) Device() string { return p.device }
func (p port) Index() int     { return p.index }

func (p port) PacketSocket() (*os.File, error) {
	var f *os.File
	err := p.do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		f = os.NewFile(uintptr(fd), p.device)
		return err
	})
	return f, err
}

var _ emul.Port = port{}

// node is an end of a link.
type node struct {
	space
	v4, v6 netip.Addr
	mac    net.HardwareAddr
}

// pair makes a veth pair between two namespaces, both ends up.
func pair(tb testing.TB, s, t space, nameS, nameT string, mtu int) {
	tb.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = nameS, mtu
	attrs.TxQLen = 1000
	check(tb, s.netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: attrs, PeerName: nameT, PeerMTU: uint32(mtu), PeerNamespace: netlink.NsFd(t.NsHandle),
	}))
	check(tb, s.up(nameS))
	check(tb, t.up(nameT))
}

// newNode configures eth0 of a namespace: addresses 10.0.0.N and fd00::N.
func newNode(tb testing.TB, s space, n int) node {
	tb.Helper()
	l, err := s.netlink.LinkByName("eth0")
	check(tb, err)
	nd := node{
		space: s, mac: l.Attrs().HardwareAddr,
		v4: netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}),
		v6: netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(n)}),
	}
	for _, a := range []netip.Addr{nd.v4, nd.v6} {
		bits := 24
		flags := 0
		if a.Is6() {
			bits, flags = 64, unix.IFA_F_NODAD
		}
		check(tb, s.netlink.AddrAdd(l, &netlink.Addr{
			IPNet: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}, Flags: flags,
		}))
	}
	return nd
}

// lab is two nodes with a wire between them.
type lab struct {
	a, b    node
	wire    space
	pa, pb  port
	session emul.Session
	log     *syncBuffer
}

// newLab builds the namespaces and devices of one link.
func newLab(tb testing.TB, mtu int) *lab {
	tb.Helper()
	needRoot(tb)
	sa, sb, wire := newSpace(tb), newSpace(tb), newSpace(tb)
	check(tb, wire.do(func() error {
		return os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	}))
	pair(tb, wire, sa, "wa", "eth0", mtu)
	pair(tb, wire, sb, "wb", "eth0", mtu)
	l := &lab{a: newNode(tb, sa, 1), b: newNode(tb, sb, 2), wire: wire, log: &syncBuffer{}}
	for _, x := range []struct {
		p      *port
		device string
	}{{&l.pa, "wa"}, {&l.pb, "wb"}} {
		link, err := wire.netlink.LinkByName(x.device)
		check(tb, err)
		*x.p = port{wire, x.device, link.Attrs().Index}
	}
	steer(tb, wire, "wa", "wb")
	neighbours(tb, l.a, l.b)
	neighbours(tb, l.b, l.a)
	return l
}

// neighbours makes n know the address of m for good.
func neighbours(tb testing.TB, n, m node) {
	tb.Helper()
	l, err := n.netlink.LinkByName("eth0")
	check(tb, err)
	for _, a := range []netip.Addr{m.v4, m.v6} {
		check(tb, n.netlink.NeighSet(&netlink.Neigh{
			LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: m.mac,
		}))
	}
}

// steer sends what the devices receive to the cores that the backend asks for.
func steer(tb testing.TB, s space, devices ...string) {
	tb.Helper()
	mask := 0
	for _, core := range software.New(software.Options{}).SteeringCores() {
		mask |= 1 << min(core, 31)
	}
	check(tb, s.do(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
			return err
		}
		for _, d := range devices {
			if err := os.WriteFile("/sys/class/net/"+d+"/queues/rx-0/rps_cpus", strconv.AppendInt(nil, int64(mask), 16), 0); err != nil {
				return err
			}
		}
		return nil
	}))
}

// cable is what the lab's link does, to be changed by tests.
func (l *lab) cable(forward, reverse emul.Impairment) emul.Cable {
	return emul.Cable{Name: "link", MTU: 1500, Forward: forward, Reverse: reverse, Seed: 1, A: l.pa, B: l.pb}
}

func newBackend(log *syncBuffer, change func(*software.Options)) *software.Backend {
	o := software.Options{Log: log}
	if change != nil {
		change(&o)
	}
	return software.New(o)
}

// join starts forwarding; the session ends with the test.
func (l *lab) join(tb testing.TB, c emul.Cable, change ...func(*software.Options)) emul.Session {
	tb.Helper()
	var f func(*software.Options)
	if len(change) > 0 {
		f = change[0]
	}
	s, err := newBackend(l.log, f).Join(tb.Context(), []emul.Cable{c})
	check(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
		if tb.Failed() {
			tb.Logf("forwarding process said: %s", l.log.String())
		}
	})
	l.session = s
	return s
}

// counters reads the link's counters.
func (l *lab) counters(tb testing.TB) emul.LinkCounters {
	tb.Helper()
	s, err := l.session.Counters()
	check(tb, err)
	return s.Links[0]
}

// eventually polls until ok, for half a minute at most.
func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); {
		if time.Now().After(end) {
			tb.Fatalf("waited 30 s for %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// udp opens a UDP socket in the node, with kernel receive stamps.
func (n node) udp(tb testing.TB, v6 bool) *net.UDPConn {
	tb.Helper()
	var c *net.UDPConn
	ip := n.v4
	if v6 {
		ip = n.v6
	}
	check(tb, n.do(func() error {
		var err error
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
		return err
	}))
	tb.Cleanup(func() { _ = c.Close() })
	raw, err := c.SyscallConn()
	check(tb, err)
	check(tb, raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20)
	}))
	return c
}

func addrOf(c net.Conn) *net.UDPAddr { return c.LocalAddr().(*net.UDPAddr) }

// tcp connects from a to b and returns both ends.
func (l *lab) tcp(tb testing.TB, v6 bool, congestion string) (from, to *net.TCPConn) {
	tb.Helper()
	return connect(tb, l.a, l.b, v6, congestion)
}

func connect(tb testing.TB, a, b node, v6 bool, congestion string) (from, to *net.TCPConn) {
	tb.Helper()
	ipA, ipB := a.v4, b.v4
	if v6 {
		ipA, ipB = a.v6, b.v6
	}
	var ln *net.TCPListener
	check(tb, b.do(func() error {
		var err error
		ln, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(ipB, 0)))
		return err
	}))
	defer ln.Close()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(ipA, 0)), Timeout: 30 * time.Second,
		Control: func(_, _ string, c syscall.RawConn) error {
			var inner error
			err := c.Control(func(fd uintptr) {
				inner = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion)
			})
			if err == nil {
				err = inner
			}
			return err
		}}
	check(tb, a.do(func() error {
		c, err := d.Dial("tcp", ln.Addr().String())
		if err == nil {
			from = c.(*net.TCPConn)
		}
		return err
	}))
	check(tb, ln.SetDeadline(time.Now().Add(30*time.Second)))
	to, err := ln.AcceptTCP()
	check(tb, err)
	tb.Cleanup(func() { _ = from.Close(); _ = to.Close() })
	return from, to
}

// syncBuffer is a buffer for several writers.
type syncBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b = append(s.b, b...)
	return len(b), nil
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.b)
}
