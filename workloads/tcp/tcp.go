// Package tcp loads a path with the kernel's TCP.
//
// A workload has two roles. The receiver listens in one namespace, reads the
// payload without looking at it, and bins what it got by its own clock. The
// sender opens flows in another one: a fixed number that send as fast as TCP
// lets them, until the end or until their bytes are sent, or flows that arrive
// at random times with random sizes, whatever the network does ([Arrivals]).
// It reads TCP_INFO of every flow on the way.
//
// Each flow is a connection of its own and begins with a header of
// [headerSize] bytes, part of its size, that tells the receiver the flow's
// number, start and size. Both roles read the same CLOCK_MONOTONIC, so a flow
// completion time needs no clock exchange. The receiver answers a complete flow with
// one byte.
package tcp

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"wirelab/emul/attr"
	"wirelab/emul/unit"
	"wirelab/workloads"
)

// Workload is the configuration of a tcp block.
type Workload struct {
	workloads.Placement
	Flows         int           `hcl:"flows,optional" default:"1" doc:"Number of concurrent connections."`
	Congestion    string        `hcl:"congestion,optional" default:"cubic" doc:"Congestion control of the sender, by the kernel's name. Always set, never inherited from the host."`
	Bytes         unit.Size     `hcl:"bytes,optional" doc:"Size of each flow; default: as much as fits in the load's time."`
	Pacing        unit.Rate     `hcl:"pacing,optional" doc:"Upper bound of each flow's sending rate (SO_MAX_PACING_RATE)."`
	SendBuffer    unit.Size     `hcl:"send_buffer,optional" doc:"SO_SNDBUF of the sender; default: the kernel tunes it."`
	ReceiveBuffer unit.Size     `hcl:"receive_buffer,optional" doc:"SO_RCVBUF of the receiver; default: the kernel tunes it."`
	Receive       string        `hcl:"receive,optional" default:"copy" doc:"How the receiver takes the payload: \"copy\" it to user space, as applications do, or \"discard\" it in the kernel (MSG_TRUNC), which takes a fraction of the processor."`
	Nodelay       bool          `hcl:"nodelay,optional" doc:"Switch Nagle's algorithm off (TCP_NODELAY)."`
	MSS           int           `hcl:"mss,optional" doc:"Upper bound of the segment size in bytes (TCP_MAXSEG)."`
	Port          int           `hcl:"port,optional" doc:"Port of the receiver; default: any free one."`
	IP            string        `hcl:"ip,optional" default:"4" doc:"Version of IP: \"4\" or \"6\"."`
	Stagger       time.Duration `hcl:"stagger,optional" default:"0s" doc:"Spread the flows' starts evenly at random over this time."`
	Interval      time.Duration `hcl:"interval,optional" default:"100ms" doc:"Width of the receiver's goodput bins."`
	InfoInterval  time.Duration `hcl:"info_interval,optional" default:"10ms" doc:"Time between two readings of a flow's TCP_INFO; longer with more than 50 flows."`
	Arrivals      *Arrivals     `hcl:"arrivals,block" doc:"Flows that arrive by themselves instead of a fixed number."`
}

var _ workloads.Workload = (*Workload)(nil)

// Kind describes the workload kind "tcp".
func Kind() workloads.Kind {
	return workloads.Kind{
		Name: "tcp",
		Doc: "Kernel TCP from one node to another: bulk flows for the whole load or of a given size, or flows that arrive by themselves. " +
			"Our own sender and receiver. " +
			"With arrivals, flows[*] are the flows that started in the measurement window and completed, with their completion time, slowdown and size only.",
		New: func() workloads.Workload {
			return &Workload{Flows: 1, Congestion: "cubic", Receive: receiveCopy, IP: "4", Interval: 100 * time.Millisecond, InfoInterval: 10 * time.Millisecond}
		},
		Actors: map[string]func() workloads.Actor{
			roleReceiver: func() workloads.Actor { return &receiver{} },
			roleSender:   func() workloads.Actor { return &sender{} },
		},
		Series: series,
	}
}

const (
	roleReceiver = "receiver"
	roleSender   = "sender"
	endpointData = "data"

	receiveCopy    = "copy"
	receiveDiscard = "discard"

	// maxFlows bounds the connections of one sender: the ports of one address.
	maxFlows = 25000
)

// Roles returns the receiver and the sender.
func (w *Workload) Roles() []workloads.Role {
	return []workloads.Role{
		{Name: roleReceiver, Node: w.To, Server: true, Config: w},
		{Name: roleSender, Node: w.From, Config: w},
	}
}

// version returns 4 or 6.
func (w *Workload) version() int {
	if w.IP == "6" {
		return 6
	}
	return 4
}

// Validate checks the values of the attributes.
func (w *Workload) Validate() []attr.Problem {
	var out []attr.Problem
	bad := func(path, summary, format string, args ...any) {
		out = append(out, attr.At(path, summary, format, args...))
	}
	if w.From == "" || w.To == "" {
		bad("", "a tcp workload needs two nodes", `name the sending node in "from" and the receiving one in "to"`)
	}
	if w.On != "" {
		bad("on", "a tcp workload has two ends", `use "from" and "to"`)
	}
	if w.Flows < 1 || w.Flows > maxFlows {
		bad("flows", "wrong number of flows", "%d is not between 1 and %d", w.Flows, maxFlows)
	}
	if w.Congestion == "" {
		bad("congestion", "no congestion control", `name one, for example "cubic" or "reno"`)
	}
	out = append(out, w.doubtCongestion()...)
	if w.Bytes != 0 && w.Bytes < headerSize {
		bad("bytes", "flow too small", "a flow has at least %d bytes", headerSize)
	}
	if w.MSS != 0 && (w.MSS < 88 || w.MSS > 65495) {
		bad("mss", "segment size out of range", "the kernel takes 88 to 65495 bytes")
	}
	if w.Port < 0 || w.Port > 65535 {
		bad("port", "no such port", "%d is not between 1 and 65535; leave it out for any free port", w.Port)
	}
	if w.IP != "4" && w.IP != "6" {
		bad("ip", "unknown version of IP", `write "4" or "6"`)
	}
	if w.Receive != receiveCopy && w.Receive != receiveDiscard {
		bad("receive", "unknown way to receive", `write "copy" or "discard"`)
	}
	if w.Interval < time.Millisecond {
		bad("interval", "bins too narrow", "at least 1ms")
	}
	if w.InfoInterval < time.Millisecond {
		bad("info_interval", "readings too frequent", "at least 1ms: each costs a system call per flow")
	}
	if w.Arrivals != nil {
		if w.Flows > 1 {
			bad("flows", "flows beside arrivals", `with an arrivals block the number of flows follows from it: leave "flows" out`)
		}
		if w.Bytes > 0 {
			bad("bytes", "bytes beside arrivals", `with an arrivals block the sizes come from its "sizes" block: leave "bytes" out`)
		}
		out = append(out, attr.Under("arrivals", w.Arrivals.validate())...)
	}
	return out
}

// header begins each flow.
type header struct {
	flow    uint32
	startNS int64 // CLOCK_MONOTONIC just before connect
	size    int64 // of the whole flow in bytes, 0 for no end
}

// headerSize is the length of a header in bytes, and the least size of a flow.
const headerSize = 24

var magic = [4]byte{'w', 'l', 'f', '1'}

func (h header) append(b []byte) []byte {
	b = append(b, magic[:]...)
	b = order.AppendUint32(b, h.flow)
	b = order.AppendUint64(b, uint64(h.startNS))
	return order.AppendUint64(b, uint64(h.size))
}

func parseHeader(b []byte) (header, error) {
	if len(b) < headerSize || [4]byte(b[:4]) != magic {
		return header{}, fmt.Errorf("a connection did not begin with a flow header: something else connects to this port")
	}
	return header{order.Uint32(b[4:]), int64(order.Uint64(b[8:])), int64(order.Uint64(b[16:]))}, nil
}

// availablePath lists the congestion controls that this kernel has loaded.
const availablePath = "/proc/sys/net/ipv4/tcp_available_congestion_control"

// doubtCongestion warns of a congestion control that this kernel has not
// loaded: it may come as a module, or the plan may be for another host, but a
// mistyped name should not wait for the run to be found.
func (w *Workload) doubtCongestion() []attr.Problem {
	text, err := os.ReadFile(availablePath)
	known := strings.Fields(string(text))
	if err != nil || len(known) == 0 || w.Congestion == "" || slices.Contains(known, w.Congestion) {
		return nil
	}
	p := attr.At("congestion", "congestion control not loaded here",
		"this kernel has %s; %q works only if it can be loaded as a module (tcp_%s)", strings.Join(known, ", "), w.Congestion, w.Congestion)
	p.Warning = true
	return []attr.Problem{p}
}
