// Package emul says what a link does to packets, and who can make it so.
//
// An [Impairment] is plain data: how fast, how late, how lossy, how long the
// queue, in one direction. A [Backend] enforces impairments on cables between
// two open [Port]s and says beforehand whether it can. The stages that decide
// a packet's fate live in emul/stage and take the time as an argument;
// emul/software drives them with a real clock.
//
// A packet meets the stages in one order, on every backend: queue and rate,
// loss, delay and jitter. The package opens no namespace and no device.
package emul

import (
	"context"
	"fmt"
	"os"
	"time"

	"wirelab/emul/hist"
	"wirelab/emul/unit"
)

// Impairment is what a link does to the packets of one direction. The zero
// value does nothing.
type Impairment struct {
	// Rate limits the throughput in bit/s on the wire: a packet costs its
	// Ethernet frame (IP packet + 14 bytes). Zero does not limit.
	Rate unit.Rate `json:"rate,omitempty"`
	// Queue bounds what waits in front of Rate, besides the packet in
	// transmission. Zero with a Rate is resolved to one BDP by the plan.
	Queue unit.Limit `json:"queue,omitzero"`
	// AQM names the queue discipline; "" and "droptail" are the same.
	AQM string `json:"aqm,omitempty"`
	// Delay is the one-way propagation delay.
	Delay time.Duration `json:"delay,omitempty"`
	// Jitter spreads Delay: half the width of the uniform distribution, the
	// standard deviation of the normal one (truncated at Delay below and 4
	// standard deviations above).
	Jitter time.Duration `json:"jitter,omitempty"`
	// Distribution of Jitter: "" or "uniform", or "normal".
	Distribution string `json:"distribution,omitempty"`
	// JitterReorders lets a packet overtake an earlier one when its drawn
	// delay is shorter; otherwise releases stay in order.
	JitterReorders bool `json:"jitter_reorders,omitempty"`
	// Loss is the probability in [0, 1] that a packet, having used the rate,
	// is lost, independently of the others.
	Loss unit.Ratio `json:"loss,omitempty"`
}

// IsZero reports whether the impairment does nothing.
func (i Impairment) IsZero() bool { return i == Impairment{} }

// Mode is the timing effort of a link's software backend.
type Mode string

// The modes: ModeDefault sleeps until each release; ModePrecise asks for
// SCHED_FIFO and spins for the last 60 us.
const (
	ModeDefault Mode = "default"
	ModePrecise Mode = "precise"
)

// Port is one device at the end of a cable, in a namespace that the port hides.
type Port interface {
	// Device is the name of the device in its namespace.
	Device() string
	// Index is the interface index in its namespace.
	Index() int
	// PacketSocket opens an AF_PACKET, SOCK_RAW socket of protocol 0 (so that
	// it receives nothing yet) in the device's namespace, not yet bound; the
	// caller owns it.
	PacketSocket() (*os.File, error)
}

// Cable is what a backend joins: two ports, and what happens in between.
type Cable struct {
	Name string
	// MTU is the largest IP packet in bytes (1500 unless set).
	MTU              int
	Forward, Reverse Impairment // A to B, B to A
	// Seed fixes the random draws: one stream per direction and stage.
	Seed uint64
	Mode Mode
	// EventLog names a file for one line per enqueue, dequeue and drop; empty
	// for none.
	EventLog string
	A, B     Port
}

// Backend enforces impairments.
type Backend interface {
	// Name is the word of the language: "software", "kernel".
	Name() string
	// Supports returns nil or an [UnsupportedError] naming the field.
	Supports(Impairment) error
	// Join connects every cable and returns once packets cross. Loss is off
	// until [Session.Arm].
	Join(ctx context.Context, cables []Cable) (Session, error)
}

// Session is a set of joined cables.
type Session interface {
	// Arm starts the clock of an experiment: zeroes all counters and
	// histograms, restarts every random stream at its first draw, and turns
	// loss on.
	Arm() error
	// Counters reads all links' counters now, in the order of the cables.
	Counters() (Snapshot, error)
	// PID is the process that forwards, 0 if none; its death ends the links.
	PID() int
	// Done is closed when the session has ended by itself; Err says why.
	Done() <-chan struct{}
	Err() error
	// Close disconnects the cables.
	Close() error
}

// Sampler is a Session that can also read its counters without the histograms,
// at a cost that allows it every 10 ms.
type Sampler interface {
	CountersLight() (Snapshot, error)
}

// Updater is a Session whose links can change while packets cross. What has
// arrived keeps its fate; queues, counters and random streams go on. To patch
// one field, change it in a copy of the present impairment.
type Updater interface {
	Update(link string, reverse bool, to Impairment) error
}

// Snapshot is the state of all links at one instant.
type Snapshot struct {
	// TimeNS is CLOCK_MONOTONIC in nanoseconds.
	TimeNS int64          `json:"time_ns"`
	Links  []LinkCounters `json:"links"`
	// Forwarder process CPU time, user and system, in nanoseconds.
	CPUNS int64 `json:"cpu_ns"`
	// Wakeups counts the forwarder's sleeps.
	Wakeups uint64 `json:"wakeups"`
}

// LinkCounters are the counters of both directions of a link.
type LinkCounters struct {
	Name    string            `json:"name"`
	Forward DirectionCounters `json:"forward"`
	Reverse DirectionCounters `json:"reverse"`
	// EventLogLost counts the lines that the event log could not take.
	EventLogLost uint64 `json:"event_log_lost,omitempty"`
}

// DirectionCounters count MTU-sized segments (never GSO super-packets) and
// Ethernet frame bytes, since the last [Session.Arm].
type DirectionCounters struct {
	PacketsIn  uint64 `json:"packets_in"`
	BytesIn    uint64 `json:"bytes_in"`
	PacketsOut uint64 `json:"packets_out"`
	BytesOut   uint64 `json:"bytes_out"`
	// QueueDrops exceeded the queue's limit; LossDrops were drawn by the loss
	// stage. Neither is ever counted as the other.
	QueueDrops uint64 `json:"queue_drops"`
	LossDrops  uint64 `json:"loss_drops"`
	// OverloadDrops were lost by the emulator or the kernel below it (socket
	// buffer, arena, send error): the link's figures are then not valid.
	OverloadDrops uint64 `json:"overload_drops"`
	// BacklogBytes and BacklogPackets wait in the queue at this instant.
	BacklogBytes   int64 `json:"backlog_bytes"`
	BacklogPackets int64 `json:"backlog_packets"`
	// DeadlineMisses counts releases more than 1 ms late.
	DeadlineMisses uint64 `json:"deadline_misses"`
	// DepartureError is the histogram of release minus due time, in ns.
	DepartureError *hist.Histogram `json:"departure_error,omitempty"`
}

// UnsupportedError says that a backend cannot do what a field asks.
type UnsupportedError struct {
	Backend string
	Field   string // the attribute in the language, for example "rate"
	Reason  string
	Remedy  string // what to write instead, or which backend can
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("backend %q cannot do %s: %s; %s", e.Backend, e.Field, e.Reason, e.Remedy)
}
