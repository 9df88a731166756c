// Package stage decides the fate of packets: which are dropped, and when the
// others leave. Stages do no input or output and read no clock: every call is
// given the arrival time and answers with computed times, so the same stages
// run under a real clock and in virtual time, and lateness of the caller never
// accumulates.
//
// A [Direction] composes the stages of one direction of a link in the order in
// which a packet meets them on a wire:
//
//	queue and rate -> loss -> delay and jitter
//
//	end of transmission = max(arrival, link free) + bits / rate
//	due                 = end of transmission + delay + jitter
//
// A packet that is lost has used the rate. Packets are wire segments, never
// the trains of segmentation offload: who carries trains asks once per
// segment. Random stages draw by the index of the segment from a [Stream], so
// which segments are lost is a pure function of seed, link and direction.
//
// Each stage is a small interface ([Queue], [Dropper], [Delayer]); other
// disciplines and loss models take the same places.
package stage

// Cause says why a packet was dropped.
type Cause uint8

// The causes. Pass is no drop.
const (
	Pass Cause = iota
	QueueDrop
	LossDrop
)

// String returns the word used in event logs.
func (c Cause) String() string {
	switch c {
	case QueueDrop:
		return "queue"
	case LossDrop:
		return "loss"
	}
	return "pass"
}

// Queue is a discipline that decides at arrival, together with the rate that
// serves it. Times are nanoseconds.
type Queue interface {
	// Offer asks for the transmission of length bytes that arrived at the
	// given time, which never decreases. It returns when the transmission
	// begins and ends, or ok false for a drop.
	Offer(length int, arrival int64) (start, end int64, ok bool)
	// Backlog is what waits at the given time, without what is in
	// transmission.
	Backlog(now int64) (packets, bytes int64)
}

// Dropper is a loss model. It is asked for each segment in turn.
type Dropper interface {
	// Drop reports whether segment index is lost.
	Drop(index uint64) bool
}

// Delayer is a propagation delay model.
type Delayer interface {
	// Delay returns the delay of segment index in nanoseconds.
	Delay(index uint64) int64
}

// Verdict is the fate of one segment.
type Verdict struct {
	Cause Cause
	// Start and End of the transmission, and Due, when the segment leaves the
	// link, in nanoseconds; none is set on a queue drop, Due not on a loss.
	Start, End, Due int64
	// Index of the segment in its direction since [Direction.Arm]; exempt
	// segments have none and repeat the next one's.
	Index uint64
}
