package tcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"sync"
	"syscall"
	"time"

	"wirelab/workloads"
)

// writeSize is what one write call hands to the kernel at most.
const writeSize = 256 << 10

// sender plays the role of that name.
type sender struct {
	env      *workloads.Env
	w        *Workload
	target   string
	dialer   net.Dialer
	activity workloads.Activity
	payload  []byte // zeroes, shared by all flows, never written
	sampler  *sampler

	mu         sync.Mutex
	congestion string // read back from the first connection
	started    int
	failed     int
	firstErr   error
	lateness   []float64 // of arrivals, in s
	offered    int64     // bytes that arrived in the window
	inWindow   int       // flows that started in the window
}

// Run opens the flows and returns when all have ended or the load is over.
func (s *sender) Run(ctx context.Context, env *workloads.Env) error {
	s.env, s.w, s.payload = env, &Workload{}, make([]byte, writeSize)
	if err := json.Unmarshal(env.Spec.Config, s.w); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	s.target = env.Spec.Endpoints[endpointData]
	if s.target == "" {
		return errors.New("the receiver named no endpoint")
	}
	var schedule []arrival
	var err error
	if s.w.Arrivals != nil {
		length := time.Duration((env.Spec.StopS - env.Spec.StartS) * 1e9)
		if schedule, err = s.w.Arrivals.schedule(env.Rand, length); err != nil {
			return err
		}
	}
	if err := s.prepare(); err != nil {
		return err
	}
	env.Ready(nil)
	if s.activity, err = env.Begin(ctx); err != nil {
		return err
	}
	s.sampler = newSampler(env, s.w, s.activity)
	sampled := make(chan struct{})
	flowsDone, endSampling := context.WithCancel(ctx)
	go func() {
		defer close(sampled)
		s.sampler.run(flowsDone)
	}()
	if s.w.Arrivals != nil {
		s.openLoop(ctx, schedule)
	} else {
		s.bulk(ctx)
	}
	endSampling()
	<-sampled
	s.summarise()
	if s.failed > 0 && s.failed == s.started {
		return fmt.Errorf("no flow could be opened to %s: %w", s.target, s.firstErr)
	}
	return context.Cause(ctx)
}

// prepare sets what every connection gets, and tries it on a socket now, so
// that an unknown congestion control shows before the load begins.
func (s *sender) prepare() error {
	s.dialer = net.Dialer{KeepAlive: -1, Control: func(_, _ string, c syscall.RawConn) error {
		var setErr error
		err := c.Control(func(fd uintptr) { setErr = s.w.setSender(int(fd)) })
		return errors.Join(err, setErr)
	}}
	s.dialer.SetMultipathTCP(false)
	return trySocket(s.w)
}

// bulk runs a fixed number of flows.
func (s *sender) bulk(ctx context.Context) {
	var wg sync.WaitGroup
	random := s.env.Rand("stagger")
	for i := range s.w.Flows {
		begin := s.activity.Begin
		if s.w.Stagger > 0 {
			begin += random.Int64N(int64(s.w.Stagger))
		}
		wg.Go(func() {
			if begin > s.activity.Begin && workloads.SleepUntil(ctx, begin) != nil {
				return
			}
			s.flow(ctx, int32(i), int64(s.w.Bytes))
		})
	}
	wg.Wait()
}

// openLoop starts flows when they arrive, whatever became of earlier ones, and
// waits for them until the end of the load.
func (s *sender) openLoop(ctx context.Context, schedule []arrival) {
	defer workloads.PreciseThread()()
	var wg sync.WaitGroup
	for i, a := range schedule {
		due := s.activity.Begin + int64(a.at)
		if due >= s.activity.End || workloads.SleepUntil(ctx, due) != nil {
			break
		}
		if late := s.env.Now() - due; due >= s.activity.WindowBegin && due < s.activity.WindowEnd {
			s.lateness = append(s.lateness, float64(late)/1e9)
			s.offered += a.size
		}
		wg.Go(func() { s.flow(ctx, int32(i), a.size) })
	}
	wg.Wait()
}

// flow opens one connection, sends and waits for the receiver's answer; size 0
// has no end but the load's.
func (s *sender) flow(ctx context.Context, number int32, size int64) {
	start := s.env.Now()
	s.mu.Lock()
	s.started++
	if start >= s.activity.WindowBegin && start < s.activity.WindowEnd {
		s.inWindow++
	}
	s.mu.Unlock()
	err := s.transfer(ctx, header{uint32(number), start, size})
	if err == nil || s.env.Now() >= s.activity.End || ctx.Err() != nil {
		return // whatever happens at the end of the load is no failure
	}
	s.mu.Lock()
	s.failed++
	if s.firstErr == nil {
		s.firstErr = err
	}
	few := s.failed <= 10
	s.mu.Unlock()
	if few {
		s.env.Log("flow %d: %v", number, err)
	}
}

func (s *sender) transfer(ctx context.Context, h header) error {
	left := time.Duration(s.activity.End - h.startNS)
	dial, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	c, err := s.dialer.DialContext(dial, "tcp", s.target)
	if err != nil {
		return err
	}
	conn := c.(*net.TCPConn)
	stop := context.AfterFunc(dial, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := conn.SetNoDelay(s.w.Nodelay); err != nil {
		return errors.Join(err, conn.Close())
	}
	o, err := s.sampler.add(int32(h.flow), conn)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	s.readBack(conn)
	err = s.send(conn, h)
	if err == nil && h.size > 0 {
		var answer [1]byte
		_, err = conn.Read(answer[:])
	}
	s.sampler.remove(o)
	// All was acknowledged, or the load is over and nobody wants the rest: a
	// reset leaves no TIME_WAIT behind, of which an open-loop load would
	// otherwise collect more than there are ports.
	return errors.Join(err, conn.SetLinger(0), conn.Close())
}

// send writes the header and the payload.
func (s *sender) send(conn *net.TCPConn, h header) error {
	first := h.append(make([]byte, 0, headerSize))
	left := h.size - headerSize
	if h.size == 0 {
		left = math.MaxInt64
	}
	if left > 0 && left < writeSize-headerSize {
		// One write, so that a short flow is one segment train.
		first = append(first, s.payload[:left]...)
		left = 0
	}
	if _, err := conn.Write(first); err != nil {
		return err
	}
	for left > 0 {
		n, err := conn.Write(s.payload[:min(left, writeSize)])
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// readBack notes the congestion control that the kernel really uses.
func (s *sender) readBack(conn *net.TCPConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.congestion != "" {
		return
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { s.congestion = congestionOf(int(fd)) })
}

// summarise reports what the flows came to; all of them have ended.
func (s *sender) summarise() {
	values, rtt := s.sampler.finish()
	values["started_count"] = float64(s.started)
	values["window_started_count"] = float64(s.inWindow)
	values["failed_count"] = float64(s.failed)
	values["window_begin_s"] = float64(s.activity.WindowBegin-s.activity.T0) / 1e9
	values["window_end_s"] = float64(s.activity.WindowEnd-s.activity.T0) / 1e9
	if s.w.Arrivals != nil {
		values["offered_bytes"] = float64(s.offered)
		addStatistics(values, "start_lateness", "s", s.lateness)
	}
	s.env.Summary(-1, values, map[string]string{"congestion": s.congestion})
	if rtt.Count() > 0 {
		s.env.Hist("rtt_s", -1, rtt)
	}
}
