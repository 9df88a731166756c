package software

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// serve answers requests until the control socket ends or quit is asked for.
func (f *forwarder) serve(conn *net.UnixConn) error {
	for {
		k, body, err := readMessage(conn)
		if err != nil {
			return err
		}
		answer, err := f.handle(k, body)
		if err != nil {
			k, answer = kindError, []byte(err.Error())
		}
		if err := writeMessage(conn, k, answer); err != nil {
			return err
		}
		if k == kindQuit {
			return nil
		}
	}
}

func (f *forwarder) handle(k kind, body []byte) ([]byte, error) {
	switch k {
	case kindArm:
		return nil, f.arm()
	case kindCounters, kindDetailed:
		return f.snapshot(k == kindDetailed)
	case kindUpdate:
		return nil, f.update(body)
	case kindQuit:
		return nil, f.stop()
	}
	return nil, fmt.Errorf("unknown request %q", k)
}

var errStuck = errors.New("forwarding thread does not answer: the host may be overloaded")

// chunks calls fn for all directions on their worker's thread, at most n per
// pause of forwarding.
func (f *forwarder) chunks(n int, fn func(i int, d *direction)) error {
	for _, w := range f.workers {
		for from := 0; from < len(f.directions); {
			todo, to := make([]int, 0, n), from
			for ; to < len(f.directions) && len(todo) < n; to++ {
				if f.owners[to] == w {
					todo = append(todo, to)
				}
			}
			if len(todo) > 0 && !w.do(func() {
				for _, i := range todo {
					fn(i, f.directions[i])
				}
			}) {
				return errStuck
			}
			from = to
		}
	}
	return nil
}

// Directions handled per pause: a pause lasts for some 50 us at most.
const (
	lightChunk = 256
	heavyChunk = 16
)

func (f *forwarder) arm() error {
	f.readDrops()
	clear(f.drops)
	base, err := f.wakeups()
	if err != nil {
		return err
	}
	f.wakeupsBase = base
	return f.chunks(heavyChunk, func(i int, d *direction) {
		d.model.Arm()
		d.counters = counters{}
		if d.errors.Count() > 0 {
			d.errors.Reset() // touches all its pages, many links' are unused
		}
		if d.log != nil {
			d.log.put(record{time: f.owners[i].clock.now(), event: eventArm, direction: d.name})
		}
	})
}

// wakeups is the number of sleeps of all workers.
func (f *forwarder) wakeups() (uint64, error) {
	var sum uint64
	for _, w := range f.workers {
		if !w.do(func() { sum += w.wakeups }) {
			return 0, errStuck
		}
	}
	return sum, nil
}

// Reading the kernel's drops costs a system call per direction, so with many
// links it is not done every time.
const (
	manyDirections = 128
	dropsInterval  = time.Second
)

func (f *forwarder) readDrops() {
	f.dropsAt = time.Now()
	for i, d := range f.directions {
		f.drops[i] += kernelDrops(d.in)
	}
}

func (f *forwarder) snapshot(detailed bool) ([]byte, error) {
	if detailed || len(f.directions) <= manyDirections || time.Since(f.dropsAt) > dropsInterval {
		f.readDrops()
	}
	wakeups, err := f.wakeups()
	if err != nil {
		return nil, err
	}
	head := snapshotHead{timeNS: f.workers[0].clock.now(), cpuNS: cpuTime(), wakeups: wakeups - f.wakeupsBase}
	size := lightChunk
	if detailed {
		size = heavyChunk
	}
	err = f.chunks(size, func(i int, d *direction) {
		r := reading{counters: d.counters}
		r.overloadDrops += f.drops[i]
		r.backlogPackets, r.backlogBytes = d.model.Backlog(f.owners[i].clock.now())
		if detailed {
			r.errors = d.errors
		}
		if d.log != nil && d.name == forward {
			r.logLost = d.log.missed.Load()
		}
		f.buffers[i] = r.append(f.buffers[i][:0])
	})
	if err != nil {
		return nil, err
	}
	f.answer = head.append(f.answer[:0])
	for _, b := range f.buffers {
		f.answer = append(f.answer, b...)
	}
	return f.answer, nil
}

// cpuTime is what this process has used, user and system, in ns.
func cpuTime() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func (f *forwarder) update(body []byte) error {
	var u update
	if err := json.Unmarshal(body, &u); err != nil {
		return fmt.Errorf("read change: %w", err)
	}
	i := 2*u.Cable + u.Direction
	if u.Cable < 0 || u.Direction < 0 || u.Direction > reverse || i >= len(f.directions) {
		return fmt.Errorf("change link %d: there is no such link", u.Cable)
	}
	if !f.owners[i].do(func() { f.directions[i].set(u.Impairment, f.quantum) }) {
		return errStuck
	}
	return nil
}
