package software

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirelab/emul/stage"
	"wirelab/emul/wire"
)

const (
	batchSize = 64
	// batchBytes bounds what one system call moves: releases get their turn
	// every few tens of microseconds, and packets are still in the cache when
	// they are sent on.
	batchBytes = 128 << 10
	minBatch   = 2
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   uint32
}

// control is room for an SCM_TIMESTAMPNS and a PACKET_AUXDATA message.
type control [96]byte

// receiver is the memory of one recvmmsg call. Each position owns a big slot; a
// packet that needs one takes it along, and it is replaced.
type receiver struct {
	msgs     [batchSize]mmsghdr
	iovs     [batchSize]unix.Iovec
	controls [batchSize]control
	slots    [batchSize]slot
}

// init gives every position its slot; ok is false when the arena is too small
// for that.
func (r *receiver) init(a *arena) (ok bool) {
	for i := range r.msgs {
		if r.slots[i], ok = a.take(big); !ok {
			return false
		}
		h := &r.msgs[i].hdr
		h.Iov, h.Iovlen = &r.iovs[i], 1
		h.Control, h.Controllen = &r.controls[i][0], uint64(len(control{}))
		r.aim(a, i)
	}
	return true
}

// aim points position i at its slot.
func (r *receiver) aim(a *arena, i int) {
	r.iovs[i] = unix.Iovec{Base: a.packet(r.slots[i]).at(vnetAt), Len: wire.VNetLen + bigData}
}

// receive reads one batch of a direction and hands it to the model. It reports
// whether more may wait.
func (w *worker) receive(d *direction) (more bool) {
	r := &w.rx
	n, errno := recvmmsg(d.in, &r.msgs[0], d.batch)
	if errno != 0 {
		switch errno {
		case unix.EAGAIN:
			return false
		case unix.EINTR, unix.ENETDOWN:
			// The device went down or away; nothing was lost in here.
			return true
		}
		// A packet that does not fit a virtio header fails the call and is
		// gone (EINVAL): lost by us, and no reason to end.
		d.overloadDrops++
		return true
	}
	now := w.clock.now()
	bytes := 0
	for i := range n {
		bytes += int(r.msgs[i].len)
		w.accept(d, i, now)
		r.msgs[i].hdr.Controllen = uint64(len(control{}))
		r.msgs[i].hdr.Flags = 0
	}
	more = n == d.batch
	d.batch = min(max(batchBytes*n/max(bytes, 1), minBatch), batchSize)
	w.agenda.update(d)
	return more
}

// ancillary is what comes beside a packet.
type ancillary struct {
	stamp     int64 // CLOCK_REALTIME ns, 0 if there is none
	tagged    bool
	tpid, tci uint16
}

const (
	cmsgHeader     = 16
	statusVLAN     = 1 << 4 // TP_STATUS_VLAN_VALID
	statusVLANTPID = 1 << 6 // TP_STATUS_VLAN_TPID_VALID
)

// parseControl reads the control messages in b.
func parseControl(b []byte) ancillary {
	var a ancillary
	for len(b) >= cmsgHeader {
		size := int(binary.NativeEndian.Uint64(b))
		if size < cmsgHeader || size > len(b) {
			return a
		}
		level := int32(binary.NativeEndian.Uint32(b[8:]))
		typ := int32(binary.NativeEndian.Uint32(b[12:]))
		data := b[cmsgHeader:size]
		switch {
		case level == unix.SOL_SOCKET && typ == unix.SO_TIMESTAMPNS && len(data) >= 16:
			a.stamp = int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
		case level == unix.SOL_PACKET && typ == unix.PACKET_AUXDATA && len(data) >= 20:
			status := binary.NativeEndian.Uint32(data)
			a.tagged = status&statusVLAN != 0
			a.tci = binary.NativeEndian.Uint16(data[16:])
			a.tpid = wire.EtherTypeVLAN
			if status&statusVLANTPID != 0 {
				a.tpid = binary.NativeEndian.Uint16(data[18:])
			}
		}
		b = b[min((size+7)&^7, len(b)):]
	}
	return a
}

// accept decides the fate of the packet at position i.
func (w *worker) accept(d *direction, i int, now int64) {
	r := &w.rx
	m := &r.msgs[i]
	length := int(m.len) - wire.VNetLen
	if length < wire.EthernetLen || m.hdr.Flags&unix.MSG_TRUNC != 0 {
		d.overloadDrops++
		return
	}
	aux := parseControl(r.controls[i][:m.hdr.Controllen])
	var p *packet
	if d.held < w.share {
		p = w.keep(i, length, &aux)
	}
	if p == nil {
		d.overloadDrops++ // of a train too: its segments are not known yet
		return
	}
	d.held += p.memory()
	d.arrived = max(d.arrived, w.clock.arrival(aux.stamp, now))
	d.packetsIn += uint64(p.train.Segments)
	d.bytesIn += uint64(p.train.WireBytes())
	if wire.Neighbour(p.frame()) {
		w.exempt(d, p)
	} else if d.model.Uniform() {
		v := d.model.Whole(p.train.Segments, d.arrived)
		if d.log != nil {
			w.logWhole(d, p, v)
		}
		w.hold(d, p, v.Due, 0, p.train.Segments)
	} else {
		w.segments(d, p)
	}
	if p.refs == 0 {
		p.refs = 1
		d.held -= w.arena.release(p)
	}
}

// keep makes a packet of position i, which goes on with the same slot or a new
// one; nil when the arena is full.
func (w *worker) keep(i, length int, aux *ancillary) *packet {
	class := big
	switch {
	case length <= smallData:
		class = small
	case length <= middleData:
		class = middle
	}
	s, ok := w.arena.take(class)
	if !ok {
		return nil
	}
	if class == big {
		s, w.rx.slots[i] = w.rx.slots[i], s
		w.rx.aim(w.arena, i)
	}
	p := w.arena.packet(s)
	if class != big {
		n := wire.VNetLen + length
		copy(unsafe.Slice(p.at(vnetAt), n), unsafe.Slice(w.rx.iovs[i].Base, n))
	}
	p.self, p.refs, p.start = s, 0, vnetAt
	describe(p, length, aux)
	return p
}

// describe reads the virtio header, puts a VLAN tag back, and finds segments.
func describe(p *packet, length int, aux *ancillary) {
	var v wire.VNet
	v.Decode(p.vnet())
	p.train.Length = length
	if aux.tagged {
		p.start -= wire.VLANLen
		p.train.Length += wire.VLANLen
		v.InsertVLAN(p.frame(), aux.tpid, aux.tci)
		v.Encode(p.vnet())
	}
	p.train = wire.NewTrain(v, p.frame(), p.train.Length)
}

// releaseGrain in ns is how far apart due times must be to be kept apart: far
// below what any timer can tell. It only matters above 10 Gbit/s.
const releaseGrain = 1000

// segments asks the model for the fate of each wire segment.
func (w *worker) segments(d *direction, p *packet) {
	t := &p.train
	full, last := t.WireLen(0), t.WireLen(t.Segments-1)
	var queueDrops, lossDrops int
	if d.log == nil {
		w.fates, queueDrops, lossDrops = d.model.Train(t.Segments, full, last, d.arrived, releaseGrain, w.fates[:0])
	} else {
		queueDrops, lossDrops = w.loggedFates(d, p, full, last)
	}
	d.queueDrops += uint64(queueDrops)
	d.lossDrops += uint64(lossDrops)
	ordered := d.model.Ordered()
	for i := range w.fates {
		f := &w.fates[i]
		d.line.push(run{due: f.Due, packet: p.self, first: uint16(f.First), count: uint16(f.Count)}, ordered)
	}
	p.refs += int32(len(w.fates))
}

// loggedFates is segments with an event for each.
func (w *worker) loggedFates(d *direction, p *packet, full, last int) (queueDrops, lossDrops int) {
	w.fates = w.fates[:0]
	flow := flowOf(p)
	for i := range p.train.Segments {
		length := full
		if i == p.train.Segments-1 {
			length = last
		}
		v := d.model.Process(length, d.arrived)
		d.log.segment(d.name, v, d.arrived, length, flow, true)
		switch v.Cause {
		case stage.QueueDrop:
			queueDrops++
		case stage.LossDrop:
			lossDrops++
		default:
			w.fates = append(w.fates, stage.Run{Due: v.Due, First: i, Count: 1})
		}
	}
	return queueDrops, lossDrops
}

// exempt passes an address resolution packet by the random stages.
func (w *worker) exempt(d *direction, p *packet) {
	v := d.model.Exempt(p.train.Length, d.arrived)
	if d.log != nil {
		d.log.segment(d.name, v, d.arrived, p.train.Length, flowOf(p), false)
	}
	if v.Cause != stage.Pass {
		d.queueDrops++
		return
	}
	w.hold(d, p, v.Due, 0, p.train.Segments)
}

// hold puts a run of segments on the delay line.
func (w *worker) hold(d *direction, p *packet, due int64, first, count int) {
	p.refs++
	d.line.push(run{due: due, packet: p.self, first: uint16(first), count: uint16(count)}, d.model.Ordered())
}

func flowOf(p *packet) wire.Flow {
	h := p.train.Headers
	if h.L3 == 0 {
		h = wire.Parse(p.frame())
	}
	return h.Flow(p.frame())
}
