package software_test

import (
	"encoding/binary"
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

	"wirelab/emul/wire"
)

// behind puts a node behind b, which forwards without offloads.
func behind(t *testing.T, l *lab) node {
	t.Helper()
	s := newSpace(t)
	pair(t, l.b.space, s, "eth1", "eth0", 1500)
	transmitChecksumOff(t, l.b.space, "eth1")
	check(t, l.b.do(func() error {
		return errors.Join(os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0),
			os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
	}))
	far := node{space: s}
	for _, family := range []struct{ near, far, net, via, back string }{
		{"10.0.1.2/24", "10.0.1.3/24", "10.0.1.0/24", "10.0.0.2", "10.0.1.2"},
		{"fd01::2/64", "fd01::3/64", "fd01::/64", "fd00::2", "fd01::2"},
	} {
		address(t, l.b.space, "eth1", family.near)
		far.v4, far.v6 = far.v6, address(t, s, "eth0", family.far) // in turn: first v4
		route(t, l.a.space, family.net, family.via)
		route(t, s, "", family.back)
	}
	return far
}

func address(t *testing.T, s space, device, prefix string) netip.Addr {
	t.Helper()
	l, err := s.netlink.LinkByName(device)
	check(t, err)
	a, err := netlink.ParseAddr(prefix)
	check(t, err)
	if a.IP.To4() == nil {
		a.Flags = unix.IFA_F_NODAD
	}
	check(t, s.netlink.AddrAdd(l, a))
	return netip.MustParsePrefix(prefix).Addr()
}

// route adds a route; "" is the default one.
func route(t *testing.T, s space, to, via string) {
	t.Helper()
	r := netlink.Route{Gw: net.ParseIP(via)}
	if to != "" {
		_, dst, err := net.ParseCIDR(to)
		check(t, err)
		r.Dst = dst
	}
	check(t, s.netlink.RouteAdd(&r))
}

// taggedTrain is a TCP super-packet from a to b with a VLAN tag in line and a
// virtio header in front.
func taggedTrain(l *lab, payload int) []byte {
	v := wire.VNet{Flags: wire.FlagNeedsChecksum, GSOType: wire.GSOTCPv4, GSOSize: 1448,
		HeaderLen: 58, ChecksumStart: 38, ChecksumOffset: 16}
	b := make([]byte, wire.VNetLen, wire.VNetLen+58+payload)
	v.Encode(b)
	b = append(append(append(b, l.b.mac...), l.a.mac...), 0x81, 0x00, 0x20, 0x64, 0x08, 0x00)
	ip := make([]byte, 40+payload)
	ip[0], ip[8], ip[9], ip[32] = 0x45, 64, wire.ProtoTCP, 5<<4
	binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
	copy(ip[12:], l.a.v4.AsSlice())
	copy(ip[16:], l.b.v4.AsSlice())
	wire.SetIPv4Checksum(ip)
	b = append(b, ip...)
	frame := b[wire.VNetLen:]
	h := wire.Parse(frame)
	binary.BigEndian.PutUint16(frame[h.L4+16:], h.PseudoHeader(frame, len(frame)-h.L4).Fold())
	return b
}

// forget removes the permanent neighbours.
func forget(t *testing.T, n node) {
	t.Helper()
	list, err := n.netlink.NeighList(0, 0)
	check(t, err)
	for _, e := range list {
		if e.State == netlink.NUD_PERMANENT {
			check(t, n.netlink.NeighDel(&e))
		}
	}
}

func knows(t *testing.T, n node, ip net.IP) bool {
	t.Helper()
	list, err := n.netlink.NeighList(0, 0)
	check(t, err)
	return slices.ContainsFunc(list, func(e netlink.Neigh) bool {
		return e.IP.Equal(ip) && len(e.HardwareAddr) == 6 && e.State&(netlink.NUD_REACHABLE|netlink.NUD_STALE|netlink.NUD_DELAY|netlink.NUD_PROBE) != 0
	})
}

// rawSocket opens a packet socket on the node's device.
func rawSocket(t *testing.T, s space) int {
	t.Helper()
	l, err := s.netlink.LinkByName("eth0")
	check(t, err)
	fd := -1
	check(t, s.do(func() error {
		var err error
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	}))
	t.Cleanup(func() { _ = unix.Close(fd) })
	check(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: 0x0300, Ifindex: l.Attrs().Index}))
	tv := unix.NsecToTimeval(int64(20 * time.Second))
	check(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
	return fd
}

func sendRaw(fd int, frame []byte) error {
	_, err := unix.Write(fd, frame)
	return err
}

// receiveTagged waits for a frame of the EtherType that came with a tag.
func receiveTagged(t *testing.T, fd int, etherType uint16) (tci uint16, frame []byte) {
	t.Helper()
	b, oob := make([]byte, 1<<16), make([]byte, 100)
	for {
		n, on, _, _, err := unix.Recvmsg(fd, b, oob, 0)
		check(t, err)
		if n < 14 || binary.BigEndian.Uint16(b[12:]) != etherType {
			continue
		}
		messages, err := unix.ParseSocketControlMessage(oob[:on])
		check(t, err)
		for _, m := range messages {
			if m.Header.Type == unix.PACKET_AUXDATA && binary.NativeEndian.Uint32(m.Data)&0x10 != 0 {
				return binary.NativeEndian.Uint16(m.Data[16:]), b[:n]
			}
		}
		t.Fatalf("the frame came without its tag: % x", b[:n])
	}
}

// checksumErrors sums the namespace's counters of wrong checksums.
func checksumErrors(t *testing.T, s space) int {
	t.Helper()
	sum := 0
	check(t, s.do(func() error {
		v4, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		lines := strings.Split(string(v4), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
			for j, n := range names {
				if n == "InCsumErrors" {
					var v int
					_, _ = fmt.Sscan(values[j], &v)
					sum += v
				}
			}
		}
		v6, err := os.ReadFile("/proc/thread-self/net/snmp6")
		for _, line := range strings.Split(string(v6), "\n") {
			if f := strings.Fields(line); len(f) == 2 && strings.HasSuffix(f[0], "InCsumErrors") {
				var v int
				_, _ = fmt.Sscan(f[1], &v)
				sum += v
			}
		}
		return err
	}))
	return sum
}
