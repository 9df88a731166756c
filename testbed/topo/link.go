package topo

import (
	"fmt"
	"strings"
	"time"

	"wirelab/emul"
	"wirelab/emul/attr"
	"wirelab/emul/unit"
	"wirelab/testbed"
)

// Direction holds the attributes that a link may have per direction. What is
// nil was not given.
type Direction struct {
	Rate               *unit.Rate     `hcl:"rate,optional" doc:"Bits per second on the wire, \"100mbit\"; a packet costs its Ethernet frame. Unlimited unless given."`
	Queue              *unit.Limit    `hcl:"queue,optional" doc:"What may wait in front of the rate: \"100pkt\", \"64KiB\", or time at the rate, \"50ms\". Default: one BDP of the path, at least two packets."`
	AQM                *string        `hcl:"aqm,optional" doc:"Queue discipline; \"droptail\" unless given."`
	Delay              *time.Duration `hcl:"delay,optional" doc:"One-way propagation delay, \"20ms\"."`
	Jitter             *time.Duration `hcl:"jitter,optional" doc:"Spread of the delay: half the width of the uniform distribution, the standard deviation of the normal one."`
	JitterDistribution *string        `hcl:"jitter_distribution,optional" doc:"\"uniform\" (default) or \"normal\"."`
	JitterReorder      *bool          `hcl:"jitter_reorder,optional" doc:"Let a packet with a shorter delay overtake; by default jitter keeps the order."`
	Loss               *unit.Ratio    `hcl:"loss,optional" doc:"Probability that a packet is lost, independently of the others, \"1%\"."`
}

// LinkSpec holds the attributes of a link.
type LinkSpec struct {
	Direction
	RTT       *time.Duration `hcl:"rtt,optional" doc:"Round-trip propagation delay, half of it in each direction. Excludes delay."`
	MTU       int            `hcl:"mtu,optional" default:"1500" doc:"Largest IP packet in bytes. Below 1280 the link carries no IPv6."`
	Emulation string         `hcl:"emulation,optional" doc:"Who enforces the impairments: \"auto\", or a backend such as \"software\". Default: what the experiment says."`
	Mode      string         `hcl:"mode,optional" default:"default" doc:"Timing effort: \"default\", or \"precise\", which spins for the last microseconds and wants a processor."`
	EventLog  bool           `hcl:"event_log,optional" default:"false" doc:"Write one line per enqueue, dequeue and drop."`
	DAD       bool           `hcl:"dad,optional" default:"false" doc:"Leave IPv6 duplicate address detection on; the build then waits for it, one to two seconds."`
	Forward   *Direction     `hcl:"forward,block" doc:"Overrides for packets from the first node to the second."`
	Reverse   *Direction     `hcl:"reverse,block" doc:"Overrides for packets from the second node to the first."`
}

// frameOverhead is what a packet costs on the wire beyond itself, in bytes:
// the Ethernet header (see emul.Impairment).
const frameOverhead = 14

// Resolve returns what the attributes do to packets of either direction, with
// the default queue where there is a rate but no queue.
func (s *LinkSpec) Resolve() (forward, reverse emul.Impairment, problems []attr.Problem) {
	return s.resolve(0)
}

// Link returns the link between two nodes.
func (s *LinkSpec) Link(name, a, b string) (testbed.Link, []attr.Problem) {
	l, problems := s.link(0)
	l.Name, l.A, l.B = name, a, b
	return l, problems
}

func (s *LinkSpec) link(rest time.Duration) (testbed.Link, []attr.Problem) {
	forward, reverse, problems := s.resolve(rest)
	return testbed.Link{
		MTU: s.MTU, Forward: forward, Reverse: reverse, Emulation: s.Emulation,
		Mode: emul.Mode(s.Mode), EventLog: s.EventLog, DAD: s.DAD,
	}, problems
}

// resolve sizes default queues for a path whose RTT is the link's and rest.
func (s *LinkSpec) resolve(rest time.Duration) (forward, reverse emul.Impairment, problems []attr.Problem) {
	if s.RTT != nil && s.Delay != nil {
		problems = append(problems, attr.At("rtt", "Both rtt and delay",
			"delay is one way, rtt is both ways together: give one of them (delay = %q is the same as rtt = %q).", *s.Delay, 2**s.Delay))
	}
	forward, reverse = s.impairment(s.Forward), s.impairment(s.Reverse)
	if s.RTT != nil {
		if s.Forward == nil || s.Forward.Delay == nil {
			forward.Delay = *s.RTT / 2
		}
		if s.Reverse == nil || s.Reverse.Delay == nil {
			reverse.Delay = *s.RTT - *s.RTT/2
		}
	}
	problems = append(problems, s.checkDirection(forward, s.Forward, "forward")...)
	back := s.checkDirection(reverse, s.Reverse, "reverse")
	if s.Forward != nil || s.Reverse != nil || len(problems) == 0 {
		problems = append(problems, back...) // else each would be told twice
	}
	problems = append(problems, s.checkLink()...)
	rtt := forward.Delay + reverse.Delay + rest
	s.defaultQueue(&forward, rtt)
	s.defaultQueue(&reverse, rtt)
	return forward, reverse, problems
}

func (s *LinkSpec) defaultQueue(i *emul.Impairment, rtt time.Duration) {
	if i.Rate > 0 && i.Queue.IsZero() {
		i.Queue.Bytes = unit.BDP(i.Rate, rtt, 1, s.mtu()+frameOverhead)
	}
}

func (s *LinkSpec) mtu() int {
	if s.MTU == 0 {
		return 1500
	}
	return s.MTU
}

// impairment lays a direction's overrides over the link's own attributes.
func (s *LinkSpec) impairment(over *Direction) emul.Impairment {
	if over == nil {
		over = &Direction{}
	}
	return emul.Impairment{
		Rate:           pick(over.Rate, s.Rate),
		Queue:          pick(over.Queue, s.Queue),
		AQM:            pick(over.AQM, s.AQM),
		Delay:          pick(over.Delay, s.Delay),
		Jitter:         pick(over.Jitter, s.Jitter),
		Distribution:   pick(over.JitterDistribution, s.JitterDistribution),
		JitterReorders: pick(over.JitterReorder, s.JitterReorder),
		Loss:           pick(over.Loss, s.Loss),
	}
}

func pick[T any](values ...*T) T {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	var zero T
	return zero
}

// checkDirection finds values that make no sense together. The path of a
// problem leads to the override that gave the value, or to the link's own
// attribute.
func (s *LinkSpec) checkDirection(i emul.Impairment, over *Direction, block string) []attr.Problem {
	if over == nil {
		over = &Direction{}
	}
	var problems []attr.Problem
	at := func(name string, overridden bool) string {
		if overridden {
			return block + "." + name
		}
		return name
	}
	add := func(path, summary, format string, args ...any) {
		problems = append(problems, attr.At(path, summary, format, args...))
	}
	if i.Loss < 0 || i.Loss > 1 {
		add(at("loss", over.Loss != nil), "Loss is not a probability", "It must be between 0%% and 100%%, not %s.", i.Loss)
	}
	jitter := at("jitter", over.Jitter != nil)
	switch i.Distribution {
	case "", "uniform":
		if i.Jitter > i.Delay {
			add(jitter, "Jitter is larger than the delay",
				"With %s of delay, a uniform jitter of %s would release packets before they arrive: raise delay, or lower jitter to at most %s.",
				i.Delay, i.Jitter, i.Delay)
		}
	case "normal":
		if 2*i.Jitter > i.Delay {
			add(jitter, "Much of the jitter is cut off",
				"A delay of %s leaves less than two standard deviations of %s below it; the distribution is truncated there, so that mean and spread differ from what is asked.",
				i.Delay, i.Jitter)
			problems[len(problems)-1].Warning = true
		}
	default:
		add(at("jitter_distribution", over.JitterDistribution != nil), "Unknown distribution",
			"Known are \"uniform\" and \"normal\", not %q.", i.Distribution)
	}
	if i.Rate == 0 && !i.Queue.IsZero() {
		add(at("queue", over.Queue != nil), "A queue without a rate",
			"Packets wait only in front of a limited rate: give the link a rate, or leave queue out.")
	}
	if i.Rate == 0 && i.AQM != "" {
		add(at("aqm", over.AQM != nil), "A queue discipline without a rate",
			"Packets wait only in front of a limited rate: give the link a rate, or leave aqm out.")
	}
	if size, ok := i.Queue.BytesAt(i.Rate, s.mtu()+frameOverhead); ok && size < unit.Size(s.mtu()+frameOverhead) {
		add(at("queue", over.Queue != nil), "The queue holds no full packet",
			"%s is %d bytes at %s, a full packet takes %d: it would be dropped whenever another is in transmission.",
			i.Queue, size, i.Rate, s.mtu()+frameOverhead)
	}
	return problems
}

func (s *LinkSpec) checkLink() []attr.Problem {
	var problems []attr.Problem
	if m := s.mtu(); m < testbed.MinMTU || m > testbed.MaxMTU {
		problems = append(problems, attr.At("mtu", "Bad MTU", "It must be between %d and %d bytes, not %d.", testbed.MinMTU, testbed.MaxMTU, m))
	}
	switch emul.Mode(s.Mode) {
	case "", emul.ModeDefault, emul.ModePrecise:
	default:
		problems = append(problems, attr.At("mode", "Unknown mode", "Known are %s, not %q.",
			strings.Join([]string{fmt.Sprintf("%q", emul.ModeDefault), fmt.Sprintf("%q", emul.ModePrecise)}, " and "), s.Mode))
	}
	return problems
}
