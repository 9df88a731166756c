package tcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"wirelab/workloads"
)

const (
	// lingerAfter keeps connections open after the load's end, so that the
	// sender's last reading of TCP_INFO finds them alive.
	lingerAfter = 200 * time.Millisecond
	// binDelay is how long after its end a bin is reported: a reader may have
	// taken its time stamp just before being descheduled.
	binDelay = 50 * time.Millisecond
	// flowLines bounds the per-flow samples a second.
	flowLines = 1000
)

// receiver plays the role of that name.
type receiver struct {
	env      *workloads.Env
	w        *Workload
	activity workloads.Activity
	end      int64 // CLOCK_MONOTONIC: what comes later does not count

	// sink takes the payload of all flows at once: nobody ever reads it, and a
	// small one stays in the processor's cache. Nil discards in the kernel.
	sink []byte

	total *bins
	// flowWidth is the width of the per-flow bins; 0 for none.
	flowWidth int64

	mu    sync.Mutex
	flows []*incoming // in order of arrival
	conns map[*net.TCPConn]struct{}
	over  bool // no more connections
	wg    sync.WaitGroup
}

// incoming is a flow as the receiver sees it.
type incoming struct {
	header
	bins   *bins // nil with arrivals
	window atomic.Int64
	bytes  atomic.Int64
	// doneNS is when the last byte of a flow with a size was read; 0 before.
	doneNS atomic.Int64
	minRTT atomic.Uint32 // us, of the handshake's answer; 0 unknown
}

// Run listens, says where, and counts until the end of the load.
func (r *receiver) Run(ctx context.Context, env *workloads.Env) error {
	r.env, r.w, r.conns = env, &Workload{}, make(map[*net.TCPConn]struct{})
	if err := json.Unmarshal(env.Spec.Config, r.w); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if r.w.Receive != receiveDiscard {
		r.sink = make([]byte, copySize)
	}
	l, err := r.listen(ctx)
	if err != nil {
		return err
	}
	defer l.Close()
	env.Ready(map[string]string{endpointData: l.Addr().String()})
	if err := r.schedule(ctx); err != nil {
		return err
	}
	go r.accept(l)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		r.reportBins(ctx)
	}()
	err = workloads.SleepUntil(ctx, r.end+int64(lingerAfter))
	l.Close()
	r.closeAll()
	<-reported
	r.summarise()
	return err
}

func (r *receiver) listen(ctx context.Context) (*net.TCPListener, error) {
	addr, err := r.env.Addr(r.env.Spec.Node, r.w.version())
	if err != nil {
		return nil, err
	}
	var optErr error
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		err := c.Control(func(fd uintptr) { optErr = r.w.setReceiver(int(fd)) })
		return errors.Join(err, optErr)
	}}
	lc.SetMultipathTCP(false)
	l, err := lc.Listen(ctx, fmt.Sprintf("tcp%d", r.w.version()), netip.AddrPortFrom(addr, uint16(r.w.Port)).String())
	switch {
	case optErr != nil:
		return nil, optErr
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d of %s on node %s is in use: choose another port, or leave it out for any free one", r.w.Port, addr, r.env.Spec.Node)
	case err != nil:
		return nil, fmt.Errorf("listen on node %s: %w", r.env.Spec.Node, err)
	}
	return l.(*net.TCPListener), nil
}

// schedule waits for T0. The receiver counts from T0 on even when its workload
// starts after another one: nothing arrives before.
func (r *receiver) schedule(ctx context.Context) error {
	t0, err := r.env.WaitStart(ctx)
	if err != nil {
		return err
	}
	s := r.env.Spec
	r.end = t0 + int64(s.StopS*1e9)
	begin := t0 + int64(max(s.Window.Start, s.StartS)*1e9)
	r.activity = workloads.Activity{
		T0: t0, Begin: t0, End: r.end,
		WindowBegin: begin, WindowEnd: max(begin, min(r.end, t0+int64(s.Window.End*1e9))),
	}
	width := int64(r.w.Interval)
	r.total = newBins(t0, r.end, width)
	if r.w.Arrivals == nil {
		// Whole multiples of the interval, so that many flows do not drown the
		// orchestrator in samples.
		lines := float64(r.w.Flows) * 1e9 / float64(width)
		r.flowWidth = width * int64(math.Ceil(lines/flowLines))
	}
	return nil
}

func (r *receiver) accept(l *net.TCPListener) {
	for {
		c, err := l.AcceptTCP()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			r.env.Log("accept: %v", err) // out of descriptors: others may end
			time.Sleep(10 * time.Millisecond)
			continue
		}
		r.mu.Lock()
		if r.over {
			r.mu.Unlock()
			c.Close()
			return
		}
		r.conns[c] = struct{}{}
		r.wg.Add(1)
		r.mu.Unlock()
		go func() {
			defer r.wg.Done()
			if err := r.serve(c); err != nil {
				r.env.Log("flow from %s: %v", c.RemoteAddr(), err)
			}
			r.mu.Lock()
			delete(r.conns, c)
			r.mu.Unlock()
			c.Close()
		}()
	}
}

// closeAll ends every connection and waits for its reader.
func (r *receiver) closeAll() {
	r.mu.Lock()
	r.over = true
	for c := range r.conns {
		c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// serve reads one flow to its end.
func (r *receiver) serve(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	f := &incoming{}
	f.readRTT(raw)
	var head [headerSize]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return ignoreEnd(err)
	}
	if f.header, err = parseHeader(head[:]); err != nil {
		return err
	}
	if r.flowWidth > 0 {
		f.bins = newBins(r.activity.T0, r.end, r.flowWidth)
	}
	r.mu.Lock()
	r.flows = append(r.flows, f)
	r.mu.Unlock()
	r.count(f, headerSize)
	if err := r.drain(raw, f); err != nil {
		return ignoreEnd(err)
	}
	if f.size == 0 || f.bytes.Load() < f.size {
		return nil
	}
	if _, err := c.Write([]byte{1}); err != nil {
		return ignoreEnd(err)
	}
	// Hold the connection until the sender has read its TCP_INFO and closes.
	_, err = io.ReadFull(c, head[:1])
	return ignoreEnd(err)
}

// readRTT takes the time between our SYN-ACK and its answer.
func (f *incoming) readRTT(raw syscall.RawConn) {
	var buf [infoSize]byte
	_ = raw.Control(func(fd uintptr) {
		if i, err := readInfo(fd, &buf); err == nil && i.minRTT > 0 && i.minRTT < math.MaxUint32 {
			f.minRTT.Store(i.minRTT)
		}
	})
}

// receiveSize is how much one call takes at most when it discards, and
// copySize when it copies: more would only miss the processor's cache.
const (
	receiveSize = 1 << 20
	copySize    = 128 << 10
)

// drain takes the payload until the flow's end.
func (r *receiver) drain(raw syscall.RawConn, f *incoming) error {
	var n int64
	var callErr error
	read := func(fd uintptr) bool {
		limit := int64(receiveSize)
		if f.size > 0 {
			limit = f.size - f.bytes.Load()
		}
		n, callErr = receive(fd, r.sink, limit)
		return !again(callErr)
	}
	for f.size == 0 || f.bytes.Load() < f.size {
		if err := raw.Read(read); err != nil {
			return err
		}
		if callErr != nil {
			return callErr
		}
		if n == 0 {
			return nil
		}
		r.count(f, n)
	}
	return nil
}

// count books n bytes at this instant.
func (r *receiver) count(f *incoming, n int64) {
	now := r.env.Now()
	if now >= r.end {
		return
	}
	bytes := f.bytes.Add(n)
	r.total.add(now, n)
	if f.bins != nil {
		f.bins.add(now, n)
	}
	if now >= r.activity.WindowBegin && now < r.activity.WindowEnd {
		f.window.Add(n)
	}
	if f.size > 0 && bytes >= f.size {
		f.doneNS.Store(now)
	}
}

// ignoreEnd drops the errors by which connections end at the load's end.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}
