package stage

import (
	"wirelab/emul"
	"wirelab/emul/unit"
)

// Options place a direction in its experiment.
type Options struct {
	Seed      uint64
	Link      string
	Direction string // "forward" or "reverse"
	// MTU is the largest IP packet in bytes; 0 means 1500.
	MTU int
}

// frameHeader is what Ethernet adds to an IP packet, in bytes.
const frameHeader = 14

// Direction runs the stages of one direction of a link. It is not safe for
// concurrent use, and allocates nothing per segment once its queue has grown.
type Direction struct {
	imp     emul.Impairment
	wireMTU int
	loss    Stream
	jitter  Stream

	queue  *DropTail
	drop   Dropper // nil when nothing is lost
	delay  Delayer
	fixed  int64 // the delay without jitter
	spread bool  // jitter is drawn
	armed  bool

	index uint64
	due   int64 // of the last segment, where order is kept
}

// NewDirection returns an idle direction. Loss is off until Arm.
func NewDirection(imp emul.Impairment, o Options) *Direction {
	if o.MTU == 0 {
		o.MTU = 1500
	}
	d := &Direction{
		wireMTU: o.MTU + frameHeader,
		loss:    NewStream(o.Seed, o.Link, o.Direction, "loss"),
		jitter:  NewStream(o.Seed, o.Link, o.Direction, "jitter"),
		queue:   &DropTail{},
	}
	d.Set(imp)
	return d
}

// Impairment is what the direction does now. To patch one field, change it in
// a copy and Set that.
func (d *Direction) Impairment() emul.Impairment { return d.imp }

// Set changes the impairment for segments that arrive from now on. What has
// arrived keeps its fate, and the random streams go on.
func (d *Direction) Set(imp emul.Impairment) {
	if imp.Rate > 0 && imp.Queue.IsZero() {
		imp.Queue.Bytes = unit.BDP(imp.Rate, 2*imp.Delay, 1, d.wireMTU)
	}
	if imp.Rate != d.imp.Rate || imp.Queue != d.imp.Queue {
		d.queue.Set(imp.Rate, imp.Queue, d.wireMTU)
	}
	d.imp = imp
	d.drop = nil
	if imp.Loss > 0 {
		d.drop = NewBernoulli(d.loss, float64(imp.Loss))
	}
	d.fixed, d.spread = int64(imp.Delay), imp.Jitter > 0
	switch {
	case !d.spread:
		d.delay = Constant(imp.Delay)
	case imp.Distribution == "normal":
		d.delay = NewNormal(d.jitter, imp.Delay, imp.Jitter)
	default:
		d.delay = NewUniform(d.jitter, imp.Delay, imp.Jitter)
	}
}

// Arm restarts the count of segments, and with it every random stream, and
// turns loss on.
func (d *Direction) Arm() { d.armed, d.index = true, 0 }

// Uniform reports whether all segments of one train meet the same fate, so
// that [Direction.Whole] may decide for all at once.
func (d *Direction) Uniform() bool { return d.queue.rate == 0 && d.drop == nil && !d.spread }

// Whole is Process for n segments that arrive together, where Uniform.
func (d *Direction) Whole(n int, arrival int64) Verdict {
	v := Verdict{Start: arrival, End: arrival, Index: d.index}
	d.index += uint64(n)
	v.Due = d.ordered(arrival + d.fixed)
	return v
}

// Process decides the fate of the next segment: length bytes of Ethernet
// frame, arrived at the given time, which must not decrease.
func (d *Direction) Process(length int, arrival int64) Verdict {
	v := Verdict{Index: d.index}
	d.index++
	var ok bool
	if v.Start, v.End, ok = d.queue.Offer(length, arrival); !ok {
		v.Cause = QueueDrop
		return v
	}
	if d.drop != nil && d.armed && d.drop.Drop(v.Index) {
		v.Cause = LossDrop
		return v
	}
	if !d.spread {
		v.Due = d.ordered(v.End + d.fixed)
		return v
	}
	v.Due = d.ordered(v.End + d.delay.Delay(v.Index))
	return v
}

// Run is a number of consecutive segments of a train that are due together.
type Run struct {
	Due          int64 // of the last one, ns
	First, Count int
}

// Train is Process for all segments of a train, which arrive together: full
// bytes each, the last one of last bytes. It appends to runs what passes and
// returns the numbers of drops. Segments whose due times lie within grain (in
// ns) may share a run.
func (d *Direction) Train(segments, full, last int, arrival, grain int64, runs []Run) (out []Run, queueDrops, lossDrops int) {
	index := d.index
	d.index += uint64(segments)
	lossy := d.drop != nil && d.armed
	end, begin := -1, int64(0) // of the run that is being collected
	for i := range segments {
		length := full
		if i == segments-1 {
			length = last
		}
		_, at, ok := d.queue.Offer(length, arrival)
		if !ok {
			queueDrops++
			continue
		}
		if lossy && d.drop.Drop(index+uint64(i)) {
			lossDrops++
			continue
		}
		if d.spread {
			at += d.delay.Delay(index + uint64(i))
		} else {
			at += d.fixed
		}
		if at = d.ordered(at); i == end && at >= begin && at-begin <= grain {
			r := &runs[len(runs)-1]
			r.Due, r.Count = max(r.Due, at), r.Count+1
		} else {
			runs = append(runs, Run{Due: at, First: i, Count: 1})
			begin = at
		}
		end = i + 1
	}
	return runs, queueDrops, lossDrops
}

// Exempt is Process for a frame that no random stage may touch: it uses queue
// and rate, is not counted, and is never lost by chance.
func (d *Direction) Exempt(length int, arrival int64) Verdict {
	v := Verdict{Index: d.index}
	var ok bool
	if v.Start, v.End, ok = d.queue.Offer(length, arrival); !ok {
		v.Cause = QueueDrop
		return v
	}
	v.Due = d.ordered(v.End + d.fixed)
	return v
}

// Ordered reports whether segments leave in the order of their arrivals.
func (d *Direction) Ordered() bool { return !d.spread || !d.imp.JitterReorders }

// ordered keeps releases in the order of arrivals, where wanted.
func (d *Direction) ordered(due int64) int64 {
	if !d.Ordered() {
		return due
	}
	d.due = max(d.due, due)
	return d.due
}

// Backlog is what waits in the queue at the given time.
func (d *Direction) Backlog(now int64) (packets, bytes int64) { return d.queue.Backlog(now) }
