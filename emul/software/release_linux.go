package software

import (
	"golang.org/x/sys/unix"

	"wirelab/emul/wire"
)

// sender is the memory of one sendmmsg call.
type sender struct {
	msgs    [batchSize]mmsghdr
	iovs    [batchSize][2]unix.Iovec
	headers [batchSize][wire.VNetLen + wire.MaxHeaderLen]byte
	sent    [batchSize]outgoing
	n       int
	bytes   int
	// departures are the runs merged into the messages, for the record.
	departures []departure
}

// outgoing is what message i carries.
type outgoing struct {
	packet   *packet
	segments uint64
	bytes    uint64
}

type departure struct {
	due     int64
	count   uint32
	message uint32
}

// maxDepartures bounds one batch: 64 trains of 64 segments.
const maxDepartures = 4096

// release sends what is due, first things first, and reports whether there was
// anything.
func (w *worker) release(now int64) bool {
	any := false
	for {
		d := w.agenda.next()
		if d == nil || d.next > now {
			return any
		}
		any = true
		w.fill(d, now)
		w.flush(d)
		w.agenda.update(d)
		now = w.clock.now()
	}
}

// fill collects a batch of due runs of one direction.
func (w *worker) fill(d *direction, now int64) {
	s := &w.tx
	s.n, s.bytes, s.departures = 0, 0, s.departures[:0]
	for s.n < batchSize && s.bytes < batchBytes && len(s.departures) < maxDepartures {
		front := d.line.front()
		if front == nil || front.due > now {
			return
		}
		r := *front
		d.line.pop()
		p := w.arena.packet(r.packet)
		s.depart(r)
		if int(r.first+r.count) < p.train.Segments {
			r.count += w.company(d, p, r, now)
		}
		s.add(p, int(r.first), int(r.count))
	}
}

// company takes the runs off the line that follow r in its packet and are due
// by now, or by the quantum after, and returns the number of their segments.
func (w *worker) company(d *direction, p *packet, r run, now int64) uint16 {
	s := &w.tx
	limit := now + d.quantum
	count := uint16(0)
	for len(s.departures) < maxDepartures {
		next := d.line.front()
		if next == nil || next.packet != r.packet || next.first != r.first+r.count+count || next.due > limit {
			break
		}
		count += next.count
		s.depart(*next)
		d.line.pop()
		p.refs-- // the message holds the packet once
	}
	return count
}

func (s *sender) depart(r run) {
	s.departures = append(s.departures, departure{due: r.due, count: uint32(r.count), message: uint32(s.n)})
}

// add makes message s.n of count segments of p from the first-th. The whole
// packet goes as it came; a part gets headers of its own.
func (s *sender) add(p *packet, first, count int) {
	t := &p.train
	i := s.n
	iov := &s.iovs[i]
	h := &s.msgs[i].hdr
	out := outgoing{packet: p, segments: uint64(count)}
	h.Iov = &iov[0]
	if count == t.Segments {
		h.Iovlen = 1
		iov[0] = unix.Iovec{Base: p.at(int(p.start)), Len: uint64(wire.VNetLen + t.Length)}
		out.bytes = uint64(t.WireBytes())
	} else {
		h.Iovlen = 2
		from, to := t.Payload(first, count)
		n := t.Rebuild(s.headers[i][:], p.frame(), first, count)
		iov[0] = unix.Iovec{Base: &s.headers[i][0], Len: uint64(n)}
		iov[1] = unix.Iovec{Base: p.at(int(p.start) + wire.VNetLen + from), Len: uint64(to - from)}
		out.bytes = uint64(count*t.HeaderLen + to - from)
	}
	s.sent[i] = out
	s.n++
	s.bytes += int(out.bytes)
}

// flush sends the batch and accounts for it.
func (w *worker) flush(d *direction) {
	s := &w.tx
	before := w.clock.now()
	var failed uint64 // bit per message
	for at := 0; at < s.n; {
		n, errno := sendmmsg(d.out, &s.msgs[at], s.n-at)
		switch {
		case errno == 0:
			at += n
		case errno == unix.EINTR:
		case errno == unix.EAGAIN && w.writable(d.out):
		default:
			// Whatever it is (EINVAL: a train the kernel cannot take; ENOBUFS:
			// the receiver's backlog is full; ENETDOWN), it is our loss of one
			// packet and not the end of the link.
			failed |= 1 << at
			at++
		}
	}
	after := w.clock.now()
	for i := range s.n {
		o := &s.sent[i]
		if failed&(1<<i) != 0 {
			d.overloadDrops += o.segments
		} else {
			d.packetsOut += o.segments
			d.bytesOut += o.bytes
		}
		d.held -= w.arena.release(o.packet)
	}
	// Messages leave one after the other during the call, each about half way
	// through its part of it: the far device's work is the second half.
	for i := range s.departures {
		e := &s.departures[i]
		d.record(e.due, before+(after-before)*int64(2*e.message+1)/int64(2*s.n), uint64(e.count))
	}
}

// writable waits a little for room in the send buffer.
func (w *worker) writable(fd int) bool {
	w.pollfd[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLOUT}
	n, err := unix.Ppoll(w.pollfd[:], &unix.Timespec{Nsec: 2e6}, nil)
	return err == unix.EINTR || err == nil && n > 0
}
