package software

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"wirelab/emul/stage"
	"wirelab/emul/wire"
)

// eventLog writes what happens to each segment of a link as CSV. The worker
// puts records into a ring, a goroutine formats them; what does not fit is
// lost and counted.
//
// A segment's lines are written when it arrives, with computed times, so lines
// are ordered by arrival, not by time: "enqueue" is its arrival, "dequeue" the
// start of its transmission, "drop" the time of the drop with its cause. The
// line "arm" marks the start of the experiment, when sequences start again.
type eventLog struct {
	ring       []record
	head, tail atomic.Uint64 // read by the writer, written by the worker
	missed     atomic.Uint64

	file *os.File
	out  *bufio.Writer
	err  error // the first of the file; owned by the writer, then by close
	stop chan struct{}
	done sync.WaitGroup
}

type event uint8

const (
	eventEnqueue event = iota
	eventDequeue
	eventDrop
	eventArm
)

var eventNames = [...]string{"enqueue", "dequeue", "drop", "arm"}

type record struct {
	time      int64
	sequence  int64 // -1 for an exempt packet
	flow      wire.Flow
	length    uint32
	event     event
	cause     stage.Cause
	direction uint8
}

const (
	logRecords  = 1 << 16
	logInterval = 10 * time.Millisecond
	logHeader   = "time_ns,event,cause,direction,sequence,length_bytes,protocol,source,source_port,destination,destination_port\n"
)

// openEventLog creates the file and starts its writer.
func openEventLog(path string) (*eventLog, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create event log: %w", err)
	}
	l := &eventLog{
		ring: make([]record, logRecords), file: f, out: bufio.NewWriterSize(f, 1<<18),
		stop: make(chan struct{}),
	}
	_, l.err = l.out.WriteString(logHeader)
	l.done.Add(1)
	go l.write()
	return l, nil
}

// put adds a record, from the worker's thread.
func (l *eventLog) put(r record) {
	tail := l.tail.Load()
	if tail-l.head.Load() == uint64(len(l.ring)) {
		l.missed.Add(1)
		return
	}
	l.ring[tail%uint64(len(l.ring))] = r
	l.tail.Store(tail + 1)
}

// segment logs the fate of one segment.
func (l *eventLog) segment(direction uint8, v stage.Verdict, arrival int64, length int, flow wire.Flow, counted bool) {
	r := record{time: arrival, sequence: -1, flow: flow, length: uint32(length), direction: direction}
	if counted {
		r.sequence = int64(v.Index)
	}
	if v.Cause == stage.QueueDrop {
		r.event, r.cause = eventDrop, v.Cause
		l.put(r)
		return
	}
	l.put(r)
	r.time, r.event = v.Start, eventDequeue
	l.put(r)
	if v.Cause != stage.Pass {
		r.time, r.event, r.cause = v.End, eventDrop, v.Cause
		l.put(r)
	}
}

// logWhole logs a train whose segments share one fate.
func (w *worker) logWhole(d *direction, p *packet, v stage.Verdict) {
	flow := flowOf(p)
	for i := range p.train.Segments {
		d.log.segment(d.name, v, d.arrived, p.train.WireLen(i), flow, true)
		v.Index++
	}
}

// write formats records until close.
func (l *eventLog) write() {
	defer l.done.Done()
	tick := time.NewTicker(logInterval)
	defer tick.Stop()
	var line []byte
	for {
		stopping := false
		select {
		case <-l.stop:
			stopping = true
		case <-tick.C:
		}
		for head, tail := l.head.Load(), l.tail.Load(); head < tail; head++ {
			line = l.ring[head%uint64(len(l.ring))].appendCSV(line[:0])
			l.head.Store(head + 1)
			if _, err := l.out.Write(line); err != nil && l.err == nil {
				l.err = err
			}
		}
		if l.err != nil {
			l.missed.Add(l.tail.Load() - l.head.Load())
		}
		if stopping {
			return
		}
	}
}

// close writes the rest; no worker may use the log any more.
func (l *eventLog) close() error {
	close(l.stop)
	l.done.Wait()
	if err := l.out.Flush(); l.err == nil {
		l.err = err
	}
	if err := l.file.Close(); l.err == nil {
		l.err = err
	}
	if l.err != nil {
		return fmt.Errorf("write event log: %w", l.err)
	}
	return nil
}

func (r *record) appendCSV(b []byte) []byte {
	b = strconv.AppendInt(b, r.time, 10)
	b = append(b, ',')
	b = append(b, eventNames[r.event]...)
	b = append(b, ',')
	if r.event == eventDrop {
		b = append(b, r.cause.String()...)
	}
	b = append(b, ',')
	b = append(b, directionNames[r.direction]...)
	b = append(b, ',')
	if r.event == eventArm {
		return append(b, ",,,,,,\n"...)
	}
	if r.sequence >= 0 {
		b = strconv.AppendInt(b, r.sequence, 10)
	}
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(r.length), 10)
	b = append(b, ',')
	return appendFlow(b, &r.flow)
}

func appendFlow(b []byte, f *wire.Flow) []byte {
	src, dst := netip.AddrFrom16(f.Src), netip.AddrFrom16(f.Dst)
	switch f.Version {
	case 0:
		return append(b, ",,,,\n"...)
	case 4:
		src, dst = netip.AddrFrom4([4]byte(f.Src[:4])), netip.AddrFrom4([4]byte(f.Dst[:4]))
	}
	b = strconv.AppendUint(b, uint64(f.Proto), 10)
	b = append(b, ',')
	b = src.AppendTo(b)
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(f.SrcPort), 10)
	b = append(b, ',')
	b = dst.AppendTo(b)
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(f.DstPort), 10)
	return append(b, '\n')
}
