// Package testbed turns a described network into a real one and back.
//
// A [Topology] is plain data: nodes and links. Its methods check it, allocate
// addresses and find paths, all without touching the host. [Up] builds it from
// network namespaces and veth pairs and returns a [Testbed] of [Host]s whose
// every link has answered a probe; [Testbed.Calibrate] measures whether the
// links do what was asked. [Testbed.Close] undoes every step in reverse order,
// and the journal lets [Clean] do the same after a crash. [Doctor] says what
// this host can do. Subpackages: netns is the only place that enters
// namespaces, journal keeps the undo list, topo makes ready graphs, instrument
// measures the lab itself.
//
// An impaired link is two veth pairs, node - wire - node, whose middle ends
// live in a namespace of their own and are joined by an emul.Backend, so that
// no impairment ever sits on a sender's own interface. A link without
// impairment is one veth pair.
package testbed

import (
	"net/netip"

	"wirelab/emul"
)

// NodeKind is what a node does with packets.
type NodeKind string

// The kinds of node.
const (
	KindHost   NodeKind = "host"   // ends traffic
	KindRouter NodeKind = "router" // forwards IP packets
	KindBridge NodeKind = "bridge" // forwards Ethernet frames
)

// Node is one namespace.
type Node struct {
	Name string   `json:"name"` // letters, digits, "-", "_", up to 63
	Kind NodeKind `json:"kind"`
	// Sysctls are set in the node's namespace, "net.ipv4.tcp_rmem": "…".
	// In net.*.conf.NAME and net.*.neigh.NAME, NAME may be a link of the node.
	Sysctls map[string]string `json:"sysctls,omitempty"`
}

// Link joins two nodes; forward is A to B.
type Link struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
	// PortA and PortB name the link's device in its node, up to 15 characters;
	// "" lets the testbed choose a name. Two links cannot share one.
	PortA string `json:"port_a,omitempty"`
	PortB string `json:"port_b,omitempty"`
	// MTU in bytes of IP packet; 0 means 1500.
	MTU     int             `json:"mtu,omitempty"`
	Forward emul.Impairment `json:"forward"`
	Reverse emul.Impairment `json:"reverse"`
	// Emulation is what the link asks for: "auto", or the name of a backend;
	// "" leaves it to the experiment.
	Emulation string `json:"emulation,omitempty"`
	// Backend is decided by the plan (see [ChooseBackend]): "software", or
	// "none" for a bare veth pair; Why says why.
	Backend  string    `json:"backend"`
	Why      string    `json:"why,omitempty"`
	Mode     emul.Mode `json:"mode,omitempty"`
	EventLog bool      `json:"event_log,omitempty"`
	// DAD leaves IPv6 duplicate address detection on (readiness waits for it).
	DAD bool `json:"dad,omitempty"`
}

// Topology is a graph, described.
type Topology struct {
	Name  string `json:"name"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links"`
}

// Address is a node's interface address on one link. IPv6 is the zero Prefix
// on a link whose MTU is below 1280 bytes (RFC 8200, section 5).
type Address struct {
	Link string       `json:"link"`
	IPv4 netip.Prefix `json:"ipv4"`
	IPv6 netip.Prefix `json:"ipv6"`
}
