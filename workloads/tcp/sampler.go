package tcp

import (
	"context"
	"math"
	"net"
	"runtime"
	"sync"

	"wirelab/workloads"
)

const (
	// fullSpeedFlows are read at the interval asked; of more, each is read less
	// often, so that reading costs a few percent of a core at most.
	fullSpeedFlows = 50
	// sampleLines bounds the time series: lines a second of all flows.
	sampleLines = 1000
)

// sampler reads TCP_INFO of all open flows at a regular interval, and exactly
// at the edges of the measurement window.
type sampler struct {
	env      *workloads.Env
	w        *Workload
	activity workloads.Activity

	mu    sync.Mutex // guards what follows; never held while reading
	open  map[*outgoing]struct{}
	kept  []*outgoing // flows to be reported one by one; not those that arrive
	total tally

	// What follows belongs to run until it has returned.
	scratch []*outgoing
	fields  []workloads.Field
	ticks   int
	lasted  int64 // ns from the first tick to the last
	cpuNS   int64
}

func newSampler(env *workloads.Env, w *Workload, a workloads.Activity) *sampler {
	return &sampler{env: env, w: w, activity: a, open: make(map[*outgoing]struct{})}
}

// add begins to follow a flow.
func (s *sampler) add(number int32, conn *net.TCPConn) (*outgoing, error) {
	o, err := newOutgoing(number, conn, s.env.Now())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[o] = struct{}{}
	return o, nil
}

// remove takes a flow's last reading, before its connection is closed.
func (s *sampler) remove(o *outgoing) {
	s.mu.Lock()
	delete(s.open, o)
	s.mu.Unlock()
	o.close(s.env.Now(), s.activity)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.add(o, s.activity)
	if s.w.Arrivals == nil {
		s.kept = append(s.kept, o)
	}
}

// run reads until ctx ends or the load is over.
func (s *sampler) run(ctx context.Context) {
	runtime.LockOSThread() // exact sleeps, and the thread's clock shows the cost
	defer runtime.UnlockOSThread()
	cpu := workloads.ThreadCPU()
	begin := s.env.Now()
	defer func() {
		s.cpuNS, s.lasted = workloads.ThreadCPU()-cpu, s.env.Now()-begin
	}()
	edges := []int64{s.activity.WindowBegin, s.activity.WindowEnd}
	next := s.activity.Begin
	for {
		wake := next
		if len(edges) > 0 {
			wake = min(wake, edges[0])
		}
		if wake > s.activity.End || workloads.SleepUntil(ctx, wake) != nil {
			return
		}
		if len(edges) > 0 && wake == edges[0] {
			s.edge(len(edges) == 2)
			edges = edges[1:]
			continue
		}
		n := s.tick()
		interval := int64(s.w.InfoInterval) * int64(max(1, (n+fullSpeedFlows-1)/fullSpeedFlows))
		next += interval
		if now := s.env.Now(); next < now { // it fell behind: do not catch up
			next = now + interval
		}
	}
}

// snapshot returns the open flows; valid until the next call.
func (s *sampler) snapshot() []*outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scratch = s.scratch[:0]
	for o := range s.open {
		s.scratch = append(s.scratch, o)
	}
	return s.scratch
}

// edge reads every flow at an edge of the window.
func (s *sampler) edge(begin bool) {
	for _, o := range s.snapshot() {
		o.edge(begin, s.activity)
	}
}

// tick reads every flow once and reports some of them; it returns how many
// there are.
func (s *sampler) tick() int {
	flows := s.snapshot()
	now := s.env.Now()
	inside := now >= s.activity.WindowBegin && now < s.activity.WindowEnd
	// Every flow is reported each so many ticks, in turn.
	perSecond := float64(len(flows)) * 1e9 / float64(s.w.InfoInterval)
	every := max(1, int(math.Ceil(perSecond/float64(max(1, (len(flows)+fullSpeedFlows-1)/fullSpeedFlows))/sampleLines)))
	for _, o := range flows {
		i, ok := o.sample(inside)
		if ok && s.w.Arrivals == nil && (int(o.number)+s.ticks)%every == 0 {
			s.fields = i.appendFields(s.fields[:0])
			s.env.Sample(now, o.number, s.fields...)
		}
	}
	if s.w.Arrivals != nil {
		s.env.Sample(now, -1, workloads.Field{Name: "active_flows_count", Value: float64(len(flows))})
	}
	s.ticks++
	return len(flows)
}

// appendFields appends the values of the time series.
func (i *info) appendFields(f []workloads.Field) []workloads.Field {
	f = append(f,
		workloads.Field{Name: "rtt_s", Value: float64(i.rtt) / 1e6},
		workloads.Field{Name: "cwnd_bytes", Value: i.cwndBytes()},
		workloads.Field{Name: "retransmissions_count", Value: float64(i.retransmits)},
		workloads.Field{Name: "delivery_rate_bps", Value: float64(i.deliveryRate) * 8},
	)
	if i.ssthresh < infinite {
		f = append(f, workloads.Field{Name: "ssthresh_bytes", Value: float64(i.ssthresh) * float64(i.sndMSS)})
	}
	if i.pacingRate != math.MaxUint32 && i.pacingRate != math.MaxUint64 { // neither spelling of "none"
		f = append(f, workloads.Field{Name: "pacing_rate_bps", Value: float64(i.pacingRate) * 8})
	}
	return f
}
