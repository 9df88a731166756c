package testbed

import (
	"fmt"
	"math"
	"slices"
	"time"

	"wirelab/emul"
	"wirelab/results"
)

// The train that measures a rate (design: fidelity is measured).
const (
	trainPackets  = 20                     // at least
	trainLongest  = 250 * time.Millisecond // unless the smallest packets take longer
	trainUsual    = 60 * time.Millisecond  // enough for a departure error of 0.1 ms to be 0.2 %
	trainSmallest = 64                     // bytes of frame
	trainAbove    = 1.05                   // times the asked rate
	trainAhead    = 3 * time.Millisecond   // of packets that begin the train
	burstInterval = 15 * time.Microsecond  // the closest that sends are paced
	burstMost     = 40                     // segments: below 64 KiB

	rateTolerance = 0.02
	rttTolerance  = 0.02
	rttDefault    = 300 * time.Microsecond
	rttPrecise    = 100 * time.Microsecond

	probeCount    = 11
	probeInterval = 5 * time.Millisecond
	probeSlowest  = 100 * time.Millisecond
)

// frameHeader is the Ethernet header in bytes.
const frameHeader = 14

// trainPlan says how one direction's rate is measured: sends of burst segments
// each, of size bytes of frame each.
type trainPlan struct {
	size, burst, sends int
	interval           time.Duration // between sends
	// ahead of the others, these many are sent at once: what waits in the queue
	// then bridges pauses of the sender.
	ahead int
}

// packets is the number of segments.
func (p trainPlan) packets() int { return p.burst * p.sends }

// length is how long the train takes at the asked rate.
func (p trainPlan) length(i emul.Impairment) time.Duration {
	return bitTime(p.packets()*p.size, float64(i.Rate))
}

func bitTime(bytes int, rate float64) time.Duration {
	return time.Duration(float64(bytes) * 8e9 / rate)
}

// planTrain chooses size and number of packets. Below some 4 Mbit/s packets are
// made smaller so that twenty of them take no longer than 250 ms; above, more
// are sent. From some Gbit/s on, sends carry several segments (GSO), no more
// than half of what the queue holds.
func planTrain(i emul.Impairment, mtu int) trainPlan {
	rate := float64(i.Rate)
	full := mtu + frameHeader
	p := trainPlan{size: full, burst: 1, sends: trainPackets}
	if bitTime(trainPackets*full, rate) > trainLongest {
		p.size = max(trainSmallest, int(rate*trainLongest.Seconds()/8/trainPackets))
	} else {
		span := trainUsual
		if i.Jitter > 0 {
			span = trainLongest
		}
		if each := bitTime(full, rate); each < burstInterval && full > gsoHeader {
			holds := burstMost
			if b, ok := i.Queue.BytesAt(i.Rate, full); ok {
				holds = int(b) / full / 2
			}
			p.burst = min(max(1, int(math.Ceil(float64(burstInterval)/float64(each)))), max(1, holds), burstMost)
		}
		p.sends = max((trainPackets+p.burst-1)/p.burst, int(span/bitTime(full*p.burst, rate)))
	}
	each := bitTime(p.size*p.burst, rate)
	p.interval = time.Duration(float64(each) / trainAbove)
	p.ahead = min(p.sends/10, int(trainAhead/each)+1)
	if b, ok := i.Queue.BytesAt(i.Rate, p.size); ok {
		p.ahead = min(p.ahead, int(b)/(p.size*p.burst)/2)
	}
	return p
}

// gsoHeader is what every segment of a TCP train repeats: Ethernet, IPv4 and
// TCP headers, in bytes.
const gsoHeader = frameHeader + 20 + 20

// arrival is one frame, or train of segments, as the kernel of the receiving
// node saw it.
type arrival struct {
	seq   uint32
	at    int64 // CLOCK_REALTIME, ns
	bytes int   // as received: headers once
}

// onWire is what the arrival took on the wire, where each of its segments, of
// at most size bytes of frame, has headers.
func (a arrival) onWire(size int) int {
	if a.bytes <= size {
		return a.bytes
	}
	payload := a.bytes - gsoHeader
	segments := (payload + size - gsoHeader - 1) / (size - gsoHeader)
	return payload + segments*gsoHeader
}

// backlogs splits a train where the sender let the link run idle, because it
// was kept from its processor: it returns, per send, the number of the
// uninterrupted part that it belongs to. A link slower than asked is busy
// throughout whatever this says, a faster one is idle in between and shows the
// rate of the sender, which is too high.
func backlogs(p trainPlan, i emul.Impairment, sent []int64) []int {
	part, parts := 0, make([]int, len(sent))
	each := int64(bitTime(p.size*p.burst, float64(i.Rate)))
	holds := int64(math.MaxInt64)
	if b, ok := i.Queue.BytesAt(i.Rate, p.size); ok {
		holds = int64(bitTime(int(b), float64(i.Rate))) + each
	}
	var free int64
	for k, at := range sent {
		if at > free {
			part++
			free = at
		}
		if free-at <= holds { // else the queue drops it
			free += each
		}
		parts[k] = part
	}
	return parts
}

// rateOf is the rate in bit/s at which the frames of a train arrived: the
// median of the rates between pairs of arrivals half a part of the train
// apart, in the longest part. A pause of the emulator in the middle of a train,
// after which it catches up, does not move the median. Frames that did not
// arrive do not count. It is 0 when no part has enough packets.
func rateOf(p trainPlan, i emul.Impairment, sent []int64, list []arrival) float64 {
	parts := backlogs(p, i, sent)
	slices.SortStableFunc(list, func(a, b arrival) int { return int(a.at - b.at) })
	var best, now []arrival // with the bytes so far
	part, total := -1, 0
	for _, a := range list {
		if k := a.send(p); k < len(parts) && parts[k] != part {
			part, now = parts[k], nil
		}
		total += a.onWire(p.size)
		now = append(now, arrival{at: a.at, bytes: total})
		if len(now) > len(best) {
			best = now
		}
	}
	half := len(best) / 2
	if half < 2 || best[len(best)-1].bytes-best[0].bytes < trainPackets/4*p.size {
		return 0
	}
	rates := make([]float64, 0, half)
	for k := range len(best) - half {
		if d := best[k+half].at - best[k].at; d > 0 {
			rates = append(rates, float64(best[k+half].bytes-best[k].bytes)*8e9/float64(d))
		}
	}
	if len(rates) == 0 {
		return 0
	}
	slices.Sort(rates)
	n := len(rates)
	return (rates[n/2] + rates[(n-1)/2]) / 2
}

// send is the number of the send that an arrival belongs to. The sequence
// number of a TCP train counts on within it.
func (a arrival) send(p trainPlan) int {
	if p.burst > 1 {
		return int(a.seq >> gsoShift)
	}
	return int(a.seq)
}

// gsoShift leaves room, in a TCP sequence number, for the bytes of one send.
const gsoShift = 16

// medianDelay is the median of the one-way delays of probes, given when each
// was sent. ok is false when fewer than half arrived.
func medianDelay(sent []int64, list []arrival) (d time.Duration, ok bool) {
	var delays []int64
	for _, a := range list {
		if int(a.seq) < len(sent) {
			delays = append(delays, a.at-sent[a.seq])
		}
	}
	if 2*len(delays) <= len(sent) {
		return 0, false
	}
	slices.Sort(delays)
	n := len(delays)
	return time.Duration((delays[n/2] + delays[(n-1)/2]) / 2), true
}

// probeSpacing keeps probes of a jittered link from queueing behind each other:
// releases stay in order, so a late one would hold up those sent soon after.
func probeSpacing(l Link) time.Duration {
	d := min(max(probeInterval, 3*max(l.Forward.Jitter, l.Reverse.Jitter)), probeSlowest)
	for _, i := range []emul.Impairment{l.Forward, l.Reverse} {
		if i.Rate > 0 { // a probe must not queue behind the one before
			d = max(d, 2*bitTime(trainSmallest, float64(i.Rate)))
		}
	}
	return d
}

// rttAllowance is the largest deviation of the RTT that is no fault.
func rttAllowance(l Link, mtu int) time.Duration {
	rtt := l.Forward.Delay + l.Reverse.Delay
	allow := rttDefault
	if l.Mode == emul.ModePrecise {
		allow = rttPrecise
	}
	allow = max(allow, time.Duration(rttTolerance*float64(rtt)))
	for _, i := range []emul.Impairment{l.Forward, l.Reverse} {
		if i.Rate > 0 {
			allow = max(allow, bitTime(mtu+frameHeader, float64(i.Rate)))
		}
	}
	// The median of n draws has a standard error of 1.25 sigma / sqrt(n).
	for _, i := range []emul.Impairment{l.Forward, l.Reverse} {
		allow += time.Duration(4 * 1.25 * float64(i.Jitter) / math.Sqrt(probeCount))
	}
	return allow
}

// rateAllowance is the largest deviation of a rate, in bit/s, that is no fault.
func rateAllowance(i emul.Impairment, p trainPlan) float64 {
	allow := max(rateTolerance, 1/float64(p.packets()))
	allow += 2 * float64(i.Jitter) / float64(p.length(i))
	return allow * float64(i.Rate)
}

// judgeRTT fills in what the probes showed. It returns what is wrong, "" if
// nothing.
func judgeRTT(c *results.Calibration, l Link, mtu int, forward, reverse time.Duration, ok bool) string {
	asked := l.Forward.Delay + l.Reverse.Delay
	allow := rttAllowance(l, mtu)
	c.RTTAskedS, c.RTTToleranceS = asked.Seconds(), allow.Seconds()
	if !ok {
		return "more than half of the idle probes did not arrive"
	}
	rtt := forward + reverse
	c.RTTMeasuredS = rtt.Seconds()
	if d := rtt - asked; d > allow || d < -allow {
		return fmt.Sprintf("asked RTT %v, idle probes show %v (tolerance %v)", asked, rtt.Round(time.Microsecond), allow)
	}
	return ""
}

// judgeRate fills in what the train of a direction showed.
func judgeRate(c *results.Calibration, i emul.Impairment, reverse bool, p trainPlan, measured float64) string {
	asked, allow := float64(i.Rate), rateAllowance(i, p)
	name := "forward"
	if reverse {
		name = "reverse"
		c.ReverseAskedBPS, c.ReverseBPS, c.ReverseToleranceB = asked, measured, allow
	} else {
		c.ForwardAskedBPS, c.ForwardBPS, c.RateToleranceBPS = asked, measured, allow
	}
	if measured == 0 {
		return fmt.Sprintf("the train that measures the %s rate did not arrive in one piece", name)
	}
	if math.Abs(measured-asked) > allow {
		return fmt.Sprintf("asked %s rate %s, a train of %d packets shows %s (tolerance %.2g %%)",
			name, rateText(asked), p.packets(), rateText(measured), 100*allow/asked)
	}
	return ""
}

func rateText(bps float64) string { return fmt.Sprintf("%.4g Mbit/s", bps/1e6) }
