package software

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul/hist"
	"wirelab/emul/stage"
)

// controlFD is the inherited end of the control socket.
const controlFD = 3

// ForwardMain is the forwarding process: it reads the cables and their sockets
// from the control socket that [Backend.Join] left it, forwards, and answers
// requests until the parent says so, ends, or ctx does.
func ForwardMain(ctx context.Context) error {
	conn, err := controlConn()
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	favour()
	f, err := setUp(conn)
	if err != nil {
		_ = writeMessage(conn, kindError, []byte(err.Error())) // the parent may be gone
		return err
	}
	err = f.serve(conn)
	if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		err = nil // the parent is gone, or asked for the end
	}
	return errors.Join(err, f.stop())
}

func controlConn() (*net.UnixConn, error) {
	file := os.NewFile(controlFD, "control")
	conn, err := net.FileConn(file)
	_ = file.Close() // FileConn has duplicated it
	if c, ok := conn.(*net.UnixConn); err == nil && ok {
		return c, nil
	}
	return nil, errors.New("forward needs the control socket of its parent: it is started by a run, not by hand")
}

// forwarder is everything in the child.
type forwarder struct {
	quantum    time.Duration
	directions []*direction // forward and reverse of each cable
	owners     []*worker    // of each direction
	workers    []*worker
	running    []*worker
	logs       []*eventLog
	sockets    []int

	drops       []uint64 // of the kernel, per direction, since arm
	dropsAt     time.Time
	wakeupsBase uint64
	buffers     [][]byte // one encoded reading per direction
	answer      []byte
}

// setUp reads the spec and the sockets, starts the workers and reports ready.
func setUp(conn *net.UnixConn) (*forwarder, error) {
	k, body, err := readMessage(conn)
	if err != nil {
		return nil, fmt.Errorf("read cables: %w", err)
	}
	var sp spec
	if k != kindSpec {
		return nil, fmt.Errorf("read cables: got message %q", k)
	}
	if err := json.Unmarshal(body, &sp); err != nil {
		return nil, fmt.Errorf("read cables: %w", err)
	}
	raiseDescriptorLimit(socketsPerCable*len(sp.Cables) + 64)
	fds, err := receiveSockets(conn, socketsPerCable*len(sp.Cables))
	if err != nil {
		return nil, err
	}
	// Nothing is allocated per packet, so nothing need be collected; the limit
	// is for what requests leave behind.
	runtime.GOMAXPROCS(sp.Workers + 2)
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(max(512<<20, sp.Memory/2))
	f := &forwarder{quantum: time.Duration(sp.QuantumNS), sockets: fds}
	if err := f.build(&sp); err != nil {
		return nil, err
	}
	r := ready{Workers: f.run()}
	return f, writeJSON(conn, kindReady, r)
}

// raiseDescriptorLimit asks for n descriptors; where it is refused, receiving
// the sockets fails with a clear error.
func raiseDescriptorLimit(n int) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || l.Cur >= uint64(n) {
		return
	}
	l.Cur = uint64(n)
	l.Max = max(l.Max, l.Cur)
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &l)
}

// receiveSockets takes n descriptors from the control socket.
func receiveSockets(conn *net.UnixConn, n int) ([]int, error) {
	var fds []int
	oob := make([]byte, unix.CmsgSpace(4*fdsPerMessage))
	for len(fds) < n {
		var b [1]byte
		_, oobn, flags, _, err := conn.ReadMsgUnix(b[:], oob)
		if err != nil {
			return nil, fmt.Errorf("receive sockets: %w", err)
		}
		if flags&unix.MSG_CTRUNC != 0 {
			return nil, fmt.Errorf("receive sockets: only %d of %d fit; raise the limit of open files (ulimit -n)", len(fds), n)
		}
		messages, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			return nil, fmt.Errorf("receive sockets: %w", err)
		}
		for i := range messages {
			got, err := unix.ParseUnixRights(&messages[i])
			if err != nil {
				return nil, fmt.Errorf("receive sockets: %w", err)
			}
			fds = append(fds, got...)
		}
	}
	return fds, nil
}

// build makes the directions and deals the cables out to workers.
func (f *forwarder) build(sp *spec) error {
	n := 2 * len(sp.Cables)
	f.drops, f.buffers, f.owners = make([]uint64, n), make([][]byte, n), make([]*worker, n)
	shares := make([][]*direction, sp.Workers)
	precise := make([]bool, sp.Workers)
	for i := range sp.Cables {
		c := &sp.Cables[i]
		a, b, err := f.cable(c, [socketsPerCable]int(f.sockets[socketsPerCable*i:]))
		if err != nil {
			return fmt.Errorf("set up %s: %w", c.Name, err)
		}
		f.directions = append(f.directions, a, b)
		share := i % sp.Workers
		shares[share] = append(shares[share], a, b)
		precise[share] = precise[share] || c.Precise
	}
	if slices.Contains(precise, true) && os.Geteuid() == 0 {
		// Touched pages stay; without the privilege a later allocation might
		// fail for it.
		_ = unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT)
	}
	for i, share := range shares {
		core := -1
		if len(sp.Cores) > 0 {
			core = sp.Cores[i%len(sp.Cores)]
		}
		memory := min(sp.Memory/int64(sp.Workers), math.MaxInt/2)
		w, err := newWorker(share, int(memory), precise[i], core)
		if err != nil {
			return err
		}
		f.workers = append(f.workers, w)
	}
	for i := range f.owners {
		f.owners[i] = f.workers[i/2%sp.Workers]
	}
	return nil
}

// cable makes the two directions between the sockets of A and B.
func (f *forwarder) cable(c *cable, s [socketsPerCable]int) (*direction, *direction, error) {
	var log *eventLog
	if c.EventLog != "" {
		var err error
		if log, err = openEventLog(c.EventLog); err != nil {
			return nil, nil, err
		}
		f.logs = append(f.logs, log)
	}
	make := func(name uint8, in, out int) *direction {
		imp := c.Forward
		if name == reverse {
			imp = c.Reverse
		}
		return &direction{
			model: stage.NewDirection(imp, stage.Options{
				Seed: c.Seed, Link: c.Name, Direction: directionNames[name], MTU: c.MTU}),
			in: in, out: out, place: -1, batch: batchSize, name: name, log: log,
			quantum: int64(quantumFor(imp, f.quantum)), errors: &hist.Histogram{},
		}
	}
	return make(forward, s[0], s[3]), make(reverse, s[2], s[1]), nil
}

// run starts the workers' threads.
func (f *forwarder) run() []Scheduling {
	var out []Scheduling
	for _, w := range f.workers {
		up := make(chan Scheduling)
		go w.loop(up)
		out = append(out, <-up)
		f.running = append(f.running, w)
	}
	return out
}

// stop ends the workers and completes the logs.
func (f *forwarder) stop() error {
	for _, w := range f.running {
		w.do(func() { w.stopped = true })
	}
	f.running = nil
	var errs []error
	for _, l := range f.logs {
		errs = append(errs, l.close())
	}
	f.logs = nil
	closeAll(f.sockets)
	f.sockets = nil
	return errors.Join(errs...)
}

// closers is how many sockets are closed at once.
const closers = 128

// closeAll closes sockets side by side: the kernel waits for a grace period in
// each close of a packet socket, and concurrent ones wait for the same.
func closeAll(fds []int) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(closers, len(fds)) {
		wg.Go(func() {
			for fd := range next {
				_ = unix.Close(fd) // nothing is to be done about it
			}
		})
	}
	for _, fd := range fds {
		next <- fd
	}
	close(next)
	wg.Wait()
}
