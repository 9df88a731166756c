package testbed

import (
	"net"
	"slices"
)

// layout says what Up builds, with every name, number and address decided
// beforehand, so that a node's whole configuration is one batch of messages
// and nothing need be read back.
type layout struct {
	*graph
	devices [][2]device // per link and side, at the nodes
	wires   [][2]device // per link and side, the ends in the wire namespace; zero where there is none
	// impaired lists the links that a backend joins.
	impaired []int
}

// device is one end of a veth pair.
type device struct {
	name  string
	index int
	mac   net.HardwareAddr
}

const (
	firstIndex = 2 // 1 is lo
	// maxNeighbours is the largest segment whose members know each other's
	// MAC addresses from the start: entries grow with its square.
	maxNeighbours = 128
)

func newLayout(t Topology) (*layout, error) {
	g, err := newGraph(t)
	if err != nil {
		return nil, err
	}
	if err := g.checkSpace(); err != nil {
		return nil, err
	}
	l := &layout{
		graph:   g,
		devices: make([][2]device, len(t.Links)),
		wires:   make([][2]device, len(t.Links)),
	}
	names := g.deviceNames()
	for n := range g.Nodes {
		index := firstIndex
		if g.isBridge(n) {
			index++ // the bridge itself comes first
		}
		for _, e := range g.links[n] {
			l.devices[e.link][e.side] = device{names[e.link][e.side], index, macAddress(0x02, e)}
			index++
		}
	}
	for i, link := range t.Links {
		if !needsBackend(link) {
			continue
		}
		for side := range 2 {
			e := end{i, side}
			l.wires[i][side] = device{wireName(i, side), firstIndex + 2*len(l.impaired) + side, macAddress(0x06, e)}
		}
		l.impaired = append(l.impaired, i)
	}
	return l, nil
}

// macAddress numbers the ends of links below a locally administered prefix.
func macAddress(first byte, e end) net.HardwareAddr {
	v := 2*e.link + e.side
	return net.HardwareAddr{first, 'W', 'L', byte(v >> 16), byte(v >> 8), byte(v)}
}

// neighbours lists the other members of the segment at an end, nil if there
// are too many to be listed.
func (l *layout) neighbours(e end) []end {
	members := l.segments[l.segment[e.link]].members
	if len(members) > maxNeighbours {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(members), func(m end) bool { return m == e })
}

func (l *layout) isImpaired(link int) bool { return l.wires[link][0].index != 0 }

// needsBackend reports whether the link has devices in the wire namespace. The
// plan decides; where it has not, the impairments do.
func needsBackend(l Link) bool {
	if l.Backend == "" {
		return !l.Forward.IsZero() || !l.Reverse.IsZero()
	}
	return l.Backend != BackendNone
}
