package software

import (
	"time"

	"wirelab/emul"
	"wirelab/emul/hist"
	"wirelab/emul/stage"
	"wirelab/emul/unit"
)

// counters of one direction, owned by its worker. See emul.DirectionCounters.
type counters struct {
	packetsIn, bytesIn   uint64
	packetsOut, bytesOut uint64
	queueDrops           uint64
	lossDrops            uint64
	overloadDrops        uint64
	deadlineMisses       uint64
}

// deadline is how late in ns a release may be without being counted.
const deadline = int64(time.Millisecond)

// direction carries packets from one port to the other. Its worker owns it.
type direction struct {
	model *stage.Direction
	in    int // descriptor of the socket it reads
	out   int // and of the one it writes

	line  line
	place int   // in the agenda, -1 when the line is empty
	next  int64 // due time of the first run, as the agenda knows it

	held    int   // memory of the packets in the line, bytes
	quantum int64 // ns
	arrived int64 // of the last packet, ns: arrivals never go back
	batch   int   // packets to read at once
	ready   bool  // is in the worker's list of sockets to read

	counters
	errors *hist.Histogram // |release - due| in ns
	log    *eventLog       // nil without one
	name   uint8           // forward or reverse
}

const (
	forward = iota
	reverse
)

var directionNames = [...]string{"forward", "reverse"}

// set changes the impairment and what follows from it.
func (d *direction) set(imp emul.Impairment, quantum time.Duration) {
	d.model.Set(imp)
	d.quantum = int64(quantumFor(imp, quantum))
}

// The release quantum by rate: below slowRate a packet's own transmission
// outlasts it, and on short links it would show.
const (
	slowRate      = unit.Rate(200e6)
	fastRate      = unit.Rate(1e9)
	quantumDelay  = 2 * time.Millisecond
	mediumQuantum = 50 * time.Microsecond
	fastQuantum   = 100 * time.Microsecond

	// From trainRate on a whole train lasts no longer than the clock can tell:
	// it is not taken apart for its own transmission time.
	trainRate = unit.Rate(10e9)
	trainBits = 8 * 65536
)

// quantumFor is how far ahead of its due time a segment may leave in the
// company of an earlier one of its train.
func quantumFor(imp emul.Impairment, asked time.Duration) time.Duration {
	switch {
	case asked < 0:
		return 0
	case asked > 0:
		return asked
	case imp.Rate >= trainRate && imp.Delay < quantumDelay:
		return min(time.Duration(trainBits*int64(time.Second)/int64(imp.Rate)), 15*time.Microsecond)
	case imp.Rate == 0 || imp.Rate < slowRate || imp.Delay < quantumDelay:
		return 0
	case imp.Rate <= fastRate:
		return mediumQuantum
	}
	return fastQuantum
}

// record counts the release of n segments at time at.
func (d *direction) record(due, at int64, n uint64) {
	e := at - due
	if e > deadline {
		d.deadlineMisses += n
	}
	d.errors.RecordN(max(e, -e), n)
}
