package software

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirelab/emul/stage"
)

const (
	// spinTime is what a precise worker burns before each due time instead of
	// sleeping through it.
	spinTime = int64(60 * time.Microsecond)
	// A worker may spin for spinShare of each spinWindow; one of SCHED_FIFO
	// that did more would starve its core.
	spinWindow = int64(100 * time.Millisecond)
	spinShare  = int64(30 * time.Millisecond)

	// A worker may stay in SCHED_FIFO while it sleeps for idleShare of each
	// turn; it looks at the clock every yieldEvery rounds.
	turn       = int64(10 * time.Millisecond)
	idleShare  = turn / 10
	yieldEvery = 16
	// shortestSleep tells a sleep from a look that found something.
	shortestSleep = int64(3 * time.Microsecond)

	longestSleep = int64(time.Second)
	// pollEvery is how many rounds of a busy worker pass between looks at the
	// sockets that were quiet.
	pollEvery = 8

	wakeEvent = -1 // of the eventfd, in place of a direction's number
)

// worker forwards the packets of some links on one thread.
type worker struct {
	clock      clock
	arena      *arena
	share      int // of the memory that one direction may hold, bytes
	directions []*direction
	agenda     agenda
	reading    []*direction // sockets that may have something to read
	epoll      int
	events     [batchSize]unix.EpollEvent
	rx         receiver
	tx         sender
	fates      []stage.Run // of the train in hand
	pollfd     [1]unix.PollFd
	precise    bool
	core       int // to be pinned to, -1 for none

	fifo, realtime bool  // SCHED_FIFO is allowed; is the class now
	turnFrom       int64 // start of the present turn, ns
	slept          int64 // in it, ns

	spinFrom, spun int64 // the present window, ns
	wakeups        uint64
	rounds         uint64

	wake     int // eventfd
	commands chan func()
	stopped  bool
}

// newWorker prepares a worker for directions, with memory for packets.
func newWorker(directions []*direction, memory int, precise bool, core int) (*worker, error) {
	w := &worker{
		clock: newClock(), directions: directions, precise: precise, core: core,
		commands: make(chan func(), 16),
		epoll:    -1, wake: -1,
		share: memory,
	}
	if len(directions) > 2 {
		w.share = memory / 2 // one link must not starve the others
	}
	w.tx.departures = make([]departure, 0, maxDepartures)
	w.fates = make([]stage.Run, 0, 64) // grows to the longest train
	var err error
	if w.arena, err = newArena(memory); err != nil {
		return nil, err
	}
	if !w.rx.init(w.arena) {
		w.close()
		return nil, fmt.Errorf("hold packets: %d bytes are not enough for one batch; allow at least 16 MiB", memory)
	}
	if err := w.watch(); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// watch registers all sockets with epoll.
func (w *worker) watch() error {
	var err error
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("create epoll: %w", err)
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return fmt.Errorf("create eventfd: %w", err)
	}
	add := func(fd int, number int32) error {
		e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: number}
		if err := unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
			return fmt.Errorf("watch socket: %w", err)
		}
		return nil
	}
	errs := []error{add(w.wake, wakeEvent)}
	for i, d := range w.directions {
		errs = append(errs, add(d.in, int32(i)))
	}
	return errors.Join(errs...)
}

func (w *worker) close() {
	for _, fd := range []int{w.epoll, w.wake} {
		if fd >= 0 {
			_ = unix.Close(fd) // of our own, nothing is lost with it
		}
	}
	w.arena.close()
}

// do runs f on the worker's thread between two rounds and waits for it. It
// reports false when the worker has ended.
func (w *worker) do(f func()) bool {
	done := make(chan struct{})
	select {
	case w.commands <- func() { f(); close(done) }:
	case <-time.After(5 * time.Second):
		return false
	}
	one := [8]byte{1}
	if _, err := unix.Write(w.wake, one[:]); err != nil && err != unix.EAGAIN {
		return false
	}
	select {
	case <-done:
		return true
	case <-time.After(5 * time.Second):
		return false
	}
}

// loop forwards until told to stop. It locks its thread for good: scheduling
// class and affinity must not leak to other goroutines.
func (w *worker) loop(ready chan<- Scheduling) {
	runtime.LockOSThread()
	g := schedule(w.core)
	w.fifo, w.realtime = g.FIFO, g.FIFO
	ready <- g
	w.turnFrom = w.clock.now()
	for !w.stopped {
		w.release(w.clock.now())
		w.receiveAll()
		if w.rounds++; w.rounds%yieldEvery == 0 {
			w.yieldClass(w.clock.now())
		}
		switch {
		case len(w.reading) == 0:
			w.sleep()
		case w.rounds%pollEvery == 0:
			w.poll(0)
		}
	}
}

// receiveAll reads one batch of every socket that may have something.
func (w *worker) receiveAll() {
	for i := 0; i < len(w.reading); {
		d := w.reading[i]
		if w.receive(d) {
			i++
			continue
		}
		d.ready = false
		last := len(w.reading) - 1
		w.reading[i] = w.reading[last]
		w.reading = w.reading[:last]
	}
}

// sleep waits for a packet, a command, or the next due time.
func (w *worker) sleep() {
	timeout := longestSleep
	if d := w.agenda.next(); d != nil {
		timeout = min(d.next-w.clock.now(), timeout)
	}
	if timeout <= 0 {
		if w.rounds%pollEvery == 0 {
			w.poll(0)
		}
		return
	}
	if w.precise && w.maySpin() {
		if timeout <= spinTime {
			w.spin()
			return
		}
		timeout -= spinTime
	}
	before := w.clock.now()
	w.poll(timeout)
	now := w.clock.now()
	if t := now - before; t > shortestSleep {
		w.wakeups++
		w.slept += t
	}
	w.yieldClass(now)
}

// yieldClass ends a turn: a worker that slept too little in it leaves
// SCHED_FIFO, in which it would starve its core, until it sleeps enough again.
func (w *worker) yieldClass(now int64) {
	length := now - w.turnFrom
	if !w.fifo || length < turn {
		return
	}
	idle := w.slept >= idleShare
	w.turnFrom, w.slept = now, 0
	switch {
	case idle && !w.realtime:
		w.realtime = realtime()
	case !idle && w.realtime:
		w.realtime = !ordinary()
	}
}

// maySpin keeps the time spent spinning below its share.
func (w *worker) maySpin() bool {
	now := w.clock.now()
	if now-w.spinFrom > spinWindow {
		w.spinFrom, w.spun = now, 0
	}
	return w.spun < spinShare
}

// spin looks for packets without sleeping until the next due time.
func (w *worker) spin() {
	from := w.clock.now()
	now := from
	for d := w.agenda.next(); now < d.next && now-from <= spinTime; now = w.clock.now() {
		if w.poll(0) {
			break
		}
	}
	w.spun += now - from
}

// poll waits for up to timeout ns, and lists the sockets that have something
// to read. It reports whether anything happened.
func (w *worker) poll(timeout int64) bool {
	n := epollWait(w.epoll, w.events[:], timeout)
	for i := range n {
		e := &w.events[i]
		if e.Fd == wakeEvent {
			w.obey()
			continue
		}
		if d := w.directions[e.Fd]; !d.ready {
			d.ready = true
			w.reading = append(w.reading, d)
		}
	}
	return n > 0
}

// obey runs the commands given by do.
func (w *worker) obey() {
	var b [8]byte
	_, _ = unix.Read(w.wake, b[:]) // only resets the counter
	for {
		select {
		case f := <-w.commands:
			f()
		default:
			return
		}
	}
}

// recvmmsg and sendmmsg never block, so they bypass the Go scheduler.
func recvmmsg(fd int, msgs *mmsghdr, n int) (int, unix.Errno) {
	r, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(msgs)), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
	return int(r), errno
}

func sendmmsg(fd int, msgs *mmsghdr, n int) (int, unix.Errno) {
	r, _, errno := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(msgs)), uintptr(n), unix.MSG_DONTWAIT, 0, 0)
	return int(r), errno
}

// longWait is from when on the Go scheduler is told of a wait.
const longWait = int64(5 * time.Millisecond)

// epollWait is epoll_pwait2(2) with the timeout in ns; errors (EINTR) count as
// no events.
func epollWait(fd int, events []unix.EpollEvent, timeout int64) int {
	ts := unix.NsecToTimespec(timeout)
	call := unix.RawSyscall6
	if timeout >= longWait {
		call = unix.Syscall6
	}
	r, _, errno := call(unix.SYS_EPOLL_PWAIT2, uintptr(fd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(unsafe.Pointer(&ts)), 0, 0)
	if errno != 0 {
		return 0
	}
	return int(r)
}
