// Package software enforces impairments in a process of our own, on any kernel
// that has packet sockets: no queueing discipline is needed.
//
// A [Backend] joins the two wire-side devices of each link. [Backend.Join]
// opens a packet socket on every device, starts our own executable as a child
// (`wirelab forward`, which calls [ForwardMain]), hands it the sockets over an
// inherited Unix socket, and returns a [Session] once packets cross. The child
// dies with its parent and with it the links.
//
// In the child each worker is one locked thread that owns whole links. It
// reads packets in batches with the kernel's arrival times, asks the stages of
// emul/stage for the fate of every wire segment in virtual time, keeps what
// passes in delay lines, and sends it when due. A train of segmentation
// offload crosses as one buffer: segments are decided one by one and leave in
// the longest runs that are due together, with headers rebuilt by emul/wire
// and the payload never copied again. Per packet there is no goroutine, no
// channel and no allocation.
//
// The emulator measures itself: the error of every departure, deadline misses,
// and what it or the kernel below it lost (overload drops, never counted as
// losses of the link).
package software

import (
	"io"
	"runtime"
	"time"

	"wirelab/emul"
)

// Name of the backend in the language.
const Name = "software"

// NodeFeaturesOff lists the offloads, by their ethtool names, that must be off
// on the node side of a link: their packets do not fit the virtio header of a
// packet socket. The wire side needs, besides: IPv6 off, no address, receive
// packet steering to [Backend.SteeringCores] (or packets of a flow overtake
// each other when its sender changes cores), its own offloads as they are, and
// both ends up before [Backend.Join].
var NodeFeaturesOff = []string{
	"tx-udp_tnl-segmentation",
	"tx-udp_tnl-csum-segmentation",
	"tx-gre-segmentation",
	"tx-gre-csum-segmentation",
	"tx-ipxip4-segmentation",
	"tx-ipxip6-segmentation",
	"tx-sctp-segmentation",
	"tx-esp-segmentation",
	"tx-gso-partial",
	"tx-gso-list",
}

// Options configure a Backend. The zero value of each field is its default.
type Options struct {
	// Binary is the executable to start, and Args its arguments, which must
	// lead to ForwardMain; default "forward".
	Binary string
	Args   []string
	// Workers is the number of forwarding threads; default half the cores, at
	// least 1 and at most 4.
	Workers int
	// Cores are the cores to pin the workers to, in turn. Default: the last
	// cores of the machine, unpinned where there is only one.
	Cores []int
	// Quantum lets later segments of a train leave with an earlier one, by at
	// most this time ahead of their due time. Default 0: 50 us for rates of
	// 200 Mbit/s to 1 Gbit/s and 100 us above, where the delay is at least
	// 2 ms; on shorter links none, and from 10 Gbit/s on the time of one train
	// (15 us at most). Negative: never.
	Quantum time.Duration
	// Memory bounds the packets held, in bytes; default a quarter of the
	// machine's. What does not fit is an overload drop.
	Memory int64
	// Log receives what the child has to say; default nowhere.
	Log io.Writer
	// ReadyTimeout bounds the start of the child; default 30 s.
	ReadyTimeout time.Duration
}

// Scheduling says what the host granted a worker's thread; what it refused is
// done without. The sessions of [Backend.Join] have a method
// Scheduling() []Scheduling.
type Scheduling struct {
	Core int  `json:"core"` // pinned to, -1 if not
	FIFO bool `json:"fifo"` // SCHED_FIFO, while it sleeps in between
	Nice int  `json:"nice"`
}

// Backend implements emul.Backend with a forwarding child process per Join.
type Backend struct {
	opt Options
}

// DefaultWorkers is the number of forwarding threads unless Options says
// otherwise; it leaves half of the cores to the traffic.
func DefaultWorkers() int { return min(max(runtime.NumCPU()/2, 1), 4) }

// New returns a backend. It checks nothing: Join does.
func New(o Options) *Backend {
	if len(o.Args) == 0 {
		o.Args = []string{"forward"}
	}
	if o.ReadyTimeout <= 0 {
		o.ReadyTimeout = 30 * time.Second
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return &Backend{opt: o}
}

// Name implements emul.Backend.
func (b *Backend) Name() string { return Name }

var _ emul.Backend = (*Backend)(nil)
