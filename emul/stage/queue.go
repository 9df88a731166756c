package stage

import (
	"sort"

	"wirelab/emul/unit"
)

// DropTail is a first-in first-out queue with a limit, served at a rate. It
// keeps what waits as the computed start times of transmissions, not the
// packets.
type DropTail struct {
	rate     uint64 // bit/s, 0 for infinitely fast
	maxPkts  int64  // that wait, 0 for no limit
	maxBytes int64
	maxWait  int64 // ns that a packet may wait, 0 for no limit

	free int64  // when the link is free, ns
	rem  uint64 // the part of a nanosecond that free lacks, in 1/rate ns

	// The transmission time of the last length, to divide once per train.
	length       int
	time, excess uint64 // ns, and the rest in 1/rate ns

	waiting  fifo
	entered  int64 // bytes that ever waited
	departed int64 // bytes that waited and began their transmission
}

// NewDropTail returns an idle queue. wireMTU is the Ethernet frame length of
// a full packet; no limit is unlimited.
func NewDropTail(rate unit.Rate, limit unit.Limit, wireMTU int) *DropTail {
	q := &DropTail{}
	q.Set(rate, limit, wireMTU)
	return q
}

// Set changes rate and limit from the next packet on; what waits keeps its
// computed times.
func (q *DropTail) Set(rate unit.Rate, limit unit.Limit, wireMTU int) {
	q.rate, q.rem, q.length = uint64(max(rate, 0)), 0, 0
	q.maxPkts, q.maxBytes, q.maxWait = 0, 0, 0
	switch {
	case limit.Bytes > 0:
		// At least one packet may wait, or a busy link would drop everything.
		q.maxBytes = max(int64(limit.Bytes), int64(wireMTU))
	case limit.Packets > 0:
		q.maxPkts = limit.Packets
	case limit.Time > 0:
		q.maxWait = int64(limit.Time)
	}
}

// Offer implements [Queue]. The limit counts what waits, besides the packet in
// transmission.
func (q *DropTail) Offer(length int, arrival int64) (start, end int64, ok bool) {
	if q.rate == 0 {
		return arrival, arrival, true
	}
	q.advance(arrival)
	if q.free <= arrival {
		q.free, q.rem = arrival, 0
	} else {
		if q.maxWait > 0 && q.free-arrival > q.maxWait && q.waiting.len() > 0 ||
			q.maxPkts > 0 && int64(q.waiting.len()) >= q.maxPkts ||
			q.maxBytes > 0 && q.entered-q.departed+int64(length) > q.maxBytes {
			return 0, 0, false
		}
		q.entered += int64(length)
		q.waiting.push(waiter{q.free, q.entered})
	}
	if length != q.length {
		bits := uint64(length) * 8 * 1e9
		q.length, q.time, q.excess = length, bits/q.rate, bits%q.rate
	}
	start = q.free
	// Whole nanoseconds are carried in free, the rest in rem: a busy link
	// never drifts from its rate.
	q.free += int64(q.time)
	if q.rem += q.excess; q.rem >= q.rate {
		q.rem -= q.rate
		q.free++
	}
	return start, q.free, true
}

// advance forgets what began its transmission by now.
func (q *DropTail) advance(now int64) {
	for q.waiting.len() > 0 {
		head := q.waiting.front()
		if head.start > now {
			return
		}
		q.departed = head.entered
		q.waiting.pop()
	}
}

// Backlog implements [Queue]. It forgets nothing: packets that arrived before
// now may still be offered.
func (q *DropTail) Backlog(now int64) (packets, bytes int64) {
	n := q.waiting.len()
	gone := sort.Search(n, func(i int) bool { return q.waiting.at(i).start > now })
	departed := q.departed
	if gone > 0 {
		departed = q.waiting.at(gone - 1).entered
	}
	return int64(n - gone), q.entered - departed
}

var _ Queue = (*DropTail)(nil)

// waiter is a packet that waits: when its transmission begins, and the bytes
// that had entered the queue with it.
type waiter struct{ start, entered int64 }

// fifo is a ring of waiters whose length is a power of two.
type fifo struct {
	ring       []waiter
	head, tail uint64
}

func (f *fifo) len() int        { return int(f.tail - f.head) }
func (f *fifo) at(i int) waiter { return f.ring[(f.head+uint64(i))&uint64(len(f.ring)-1)] }
func (f *fifo) front() waiter   { return f.at(0) }
func (f *fifo) pop()            { f.head++ }

func (f *fifo) push(w waiter) {
	if f.len() == len(f.ring) {
		f.grow()
	}
	f.ring[f.tail&uint64(len(f.ring)-1)] = w
	f.tail++
}

func (f *fifo) grow() {
	bigger := make([]waiter, max(64, 2*len(f.ring)))
	n := 0
	for ; f.len() > 0; n++ {
		bigger[n] = f.front()
		f.pop()
	}
	f.ring, f.head, f.tail = bigger, 0, uint64(n)
}
