package testbed

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"net/netip"
)

// The address plan. Subnets are cut from 10.0.0.0/8 and fd57:4c00::/42 in units
// of four IPv4 addresses or one IPv6 /64: unit u begins at 10.0.0.0 + 4u and at
// fd57:4c00:U:u::/64 with the 22 bits of u in the last two groups. A link
// between two hosts or routers takes one unit (a /30), what bridges join takes
// the next power of two that holds its members. The lab's namespaces are not
// connected to the host's network, so that these addresses meet no others.
const (
	unitBits    = 22 // 10/8 holds 2^22 units
	unitPrefix4 = 30
	unitPrefix6 = 64
	base4       = 10 << 24
	base6       = 0xfd574c00 << 32
)

// allocate gives every segment its subnet, in the order of their numbers.
func (g *graph) allocate() {
	var next uint32
	for i := range g.segments {
		s := &g.segments[i]
		s.size = units(len(s.members))
		s.start = (next + s.size - 1) &^ (s.size - 1)
		next = s.start + s.size
	}
}

// units is how many units of four addresses a subnet of n members takes, with
// its network and broadcast addresses.
func units(n int) uint32 {
	need := max(n+2, 4)
	return 1 << (bits.Len(uint(need-1)) - 2)
}

// unitsUsed is the end of the last subnet.
func (g *graph) unitsUsed() uint32 {
	if len(g.segments) == 0 {
		return 1
	}
	last := g.segments[len(g.segments)-1]
	return last.start + last.size
}

func (g *graph) checkSpace() error {
	if u := g.unitsUsed(); u > 1<<unitBits {
		return fmt.Errorf("topology %s needs %d subnets of four addresses, 10.0.0.0/8 holds %d: split it into smaller labs",
			g.Name, u, 1<<unitBits)
	}
	return nil
}

// Addresses returns the addresses of every host and router, in the order of
// its links. It depends on nothing but the topology. Bridges have none.
func (t Topology) Addresses() (map[string][]Address, error) {
	g, err := newGraph(t)
	if err != nil {
		return nil, err
	}
	if err := g.checkSpace(); err != nil {
		return nil, err
	}
	all := make(map[string][]Address, len(t.Nodes))
	for n, node := range t.Nodes {
		if addrs := g.addressesOf(n); len(addrs) > 0 {
			all[node.Name] = addrs
		}
	}
	return all, nil
}

func (g *graph) addressesOf(node int) []Address {
	if g.isBridge(node) {
		return nil
	}
	var addrs []Address
	for _, e := range g.links[node] {
		addrs = append(addrs, g.addressAt(e))
	}
	return addrs
}

// addressAt is the address of the host or router at an end.
func (g *graph) addressAt(e end) Address {
	s := g.segments[g.segment[e.link]]
	number := g.address[e.link][e.side]
	a := Address{
		Link: g.Links[e.link].Name,
		IPv4: netip.PrefixFrom(ipv4(base4+s.start*4+number), unitPrefix4-bits.TrailingZeros32(s.size)),
	}
	if g.mtu(e.link) >= minIPv6MTU {
		a.IPv6 = netip.PrefixFrom(ipv6(s.start, uint64(number)), unitPrefix6)
	}
	return a
}

func ipv4(v uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], v)
	return netip.AddrFrom4(b)
}

func ipv6(unit uint32, host uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], base6|uint64(unit))
	binary.BigEndian.PutUint64(b[8:], host)
	return netip.AddrFrom16(b)
}

// prefixes are the two networks of a block of 2^size units from start.
func prefixes(start uint32, size int) (v4, v6 netip.Prefix) {
	return netip.PrefixFrom(ipv4(base4+start*4), unitPrefix4-size),
		netip.PrefixFrom(ipv6(start, 0), unitPrefix6-size)
}
