package testbed

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"wirelab/emul"
	"wirelab/emul/unit"
	"wirelab/results"
)

// carry is a link as asked (or as it is, where that differs): it serves a
// train that was sent at the given times and tells what arrives.
func carry(p trainPlan, i emul.Impairment, sent []int64) []arrival {
	each := int64(bitTime(p.size*p.burst, float64(i.Rate)))
	holds := int64(math.MaxInt64)
	if b, ok := i.Queue.BytesAt(i.Rate, p.size); ok {
		holds = int64(bitTime(int(b), float64(i.Rate)))
	}
	var out []arrival
	var free int64
	for k, at := range sent {
		if wait := free - at; wait > holds+each {
			continue
		}
		free = max(free, at) + each
		bytes := p.size
		seq := uint32(k)
		if p.burst > 1 {
			bytes, seq = p.burst*(p.size-gsoHeader)+gsoHeader, seq<<gsoShift
		}
		out = append(out, arrival{seq: seq, at: free + int64(i.Delay), bytes: bytes})
	}
	return out
}

// schedule is when a train would be sent by a sender that is never late.
func schedule(p trainPlan) []int64 {
	sent := make([]int64, p.sends)
	at := int64(1e9)
	for k := range sent {
		sent[k] = at
		if k >= p.ahead {
			at += int64(p.interval)
		}
	}
	return sent
}

func link(rate unit.Rate, queue int64) emul.Impairment {
	return emul.Impairment{Rate: rate, Queue: unit.Limit{Packets: queue}}
}

func TestPlanTrain(t *testing.T) {
	for _, rate := range []unit.Rate{5e3, 64e3, 1e6, 5e6, 100e6, 1e9, 10e9, 40e9} {
		for _, queue := range []int64{2, 100, 10000} {
			p := planTrain(link(rate, queue), 1500)
			length := p.length(link(rate, queue))
			if p.packets() < trainPackets || p.size < trainSmallest || p.size > 1514 {
				t.Errorf("%v: %d packets of %d bytes", rate, p.packets(), p.size)
			}
			if length > trainLongest+time.Millisecond && p.size > trainSmallest {
				t.Errorf("%v: the train takes %v", rate, length)
			}
			if p.burst > 1 && int64(p.burst) > queue/2 || p.burst*(p.size-gsoHeader) > 65000 {
				t.Errorf("%v: sends of %d segments into a queue of %d", rate, p.burst, queue)
			}
			if sent := float64(p.size*p.burst) * 8e9 / float64(p.interval); sent < 1.04*float64(rate) || sent > 1.2*float64(rate) {
				t.Errorf("%v: it is sent at %.4g bit/s", rate, sent)
			}
		}
	}
}

func TestRateOf(t *testing.T) {
	for _, rate := range []unit.Rate{5e3, 64e3, 1e6, 5e6, 100e6, 1e9, 10e9} {
		for _, queue := range []int64{2, 100, 100000} {
			asked := link(rate, queue)
			p := planTrain(asked, 1500)
			got := rateOf(p, asked, schedule(p), carry(p, asked, schedule(p)))
			if math.Abs(got/float64(rate)-1) > 0.005 {
				t.Errorf("%v, queue %d: %.5g bit/s", rate, queue, got)
			}
		}
	}
}

// A link that is not as asked shows.
func TestRateOfAnotherLink(t *testing.T) {
	asked := link(100e6, 100)
	p := planTrain(asked, 1500)
	for _, factor := range []float64{0.5, 0.9, 0.97, 1.03, 1.1, 100} {
		is := asked
		is.Rate = unit.Rate(factor * 100e6)
		got := rateOf(p, asked, schedule(p), carry(p, is, schedule(p)))
		var c results.Calibration
		if judgeRate(&c, asked, false, p, got) == "" {
			t.Errorf("%.0f Mbit/s instead of 100 pass as %.4g", factor*100, got/1e6)
		}
	}
}

// A sender that is kept from its processor, and an emulator that catches up
// after a pause, do not change what is measured.
func TestRateOfABusyHost(t *testing.T) {
	asked := link(100e6, 50)
	p := planTrain(asked, 1500)
	sent := schedule(p)
	for k := p.sends / 3; k < p.sends; k++ {
		sent[k] += int64(25 * time.Millisecond)
	}
	if got := rateOf(p, asked, sent, carry(p, asked, sent)); math.Abs(got/100e6-1) > 0.005 {
		t.Errorf("with a pause of the sender: %.5g bit/s", got)
	}
	list := carry(p, asked, schedule(p))
	from := list[len(list)-60].at
	for i := range list {
		if d := list[i].at - from; d > 0 && d < int64(6*time.Millisecond) {
			list[i].at = from + int64(6*time.Millisecond)
		}
	}
	if got := rateOf(p, asked, schedule(p), list); math.Abs(got/100e6-1) > 0.005 {
		t.Errorf("with a pause of the emulator: %.5g bit/s", got)
	}
	r := rand.New(rand.NewPCG(1, 1))
	list = carry(p, asked, schedule(p))
	for i := range list {
		list[i].at += r.Int64N(100000)
	}
	if got := rateOf(p, asked, schedule(p), list); math.Abs(got/100e6-1) > 0.01 {
		t.Errorf("with 0.1 ms of lateness: %.5g bit/s", got)
	}
}

func TestRateOfNothing(t *testing.T) {
	asked := link(100e6, 50)
	p := planTrain(asked, 1500)
	list := carry(p, asked, schedule(p))
	for n := range 4 {
		if got := rateOf(p, asked, schedule(p), list[:n]); got != 0 {
			t.Errorf("%d arrivals show a rate of %.4g", n, got)
		}
	}
	var c results.Calibration
	if why := judgeRate(&c, asked, true, p, 0); !strings.Contains(why, "reverse") {
		t.Errorf("nothing arrived, the reason is %q", why)
	}
}

func TestJudgeRTT(t *testing.T) {
	l := Link{Forward: emul.Impairment{Delay: 10 * time.Millisecond}, Reverse: emul.Impairment{Delay: 10 * time.Millisecond}}
	for _, c := range []struct {
		mode   emul.Mode
		delay  time.Duration // asked, one way
		is     time.Duration // per way
		passes bool
	}{
		{emul.ModeDefault, 10 * time.Millisecond, 10*time.Millisecond + 100*time.Microsecond, true},
		{emul.ModeDefault, 10 * time.Millisecond, 10*time.Millisecond + 300*time.Microsecond, false},
		{emul.ModeDefault, time.Millisecond, time.Millisecond + 140*time.Microsecond, true},
		{emul.ModePrecise, time.Millisecond, time.Millisecond + 140*time.Microsecond, false},
		{emul.ModePrecise, time.Millisecond, time.Millisecond + 40*time.Microsecond, true},
		{emul.ModeDefault, 50 * time.Millisecond, 50 * time.Microsecond, false}, // nothing enforces it
	} {
		l.Mode, l.Forward.Delay, l.Reverse.Delay = c.mode, c.delay, c.delay
		var r results.Calibration
		why := judgeRTT(&r, l, 1500, c.is, c.is, true)
		if (why == "") != c.passes {
			t.Errorf("%s, %v asked, %v measured: %q", c.mode, c.delay, c.is, why)
		}
		if r.RTTMeasuredS != 2*c.is.Seconds() || r.RTTAskedS != 2*c.delay.Seconds() || r.RTTToleranceS <= 0 {
			t.Errorf("recorded %+v", r)
		}
	}
	var r results.Calibration
	if judgeRTT(&r, l, 1500, 0, 0, false) == "" {
		t.Error("lost probes pass")
	}
}

func TestMedianDelay(t *testing.T) {
	sent := []int64{0, 100, 200, 300}
	if d, ok := medianDelay(sent, []arrival{{seq: 2, at: 210}, {seq: 0, at: 12}, {seq: 3, at: 900}}); d != 12 || !ok {
		t.Errorf("%v, %v, want 12", d, ok)
	}
	if _, ok := medianDelay(sent, []arrival{{seq: 2, at: 210}, {seq: 9, at: 5}}); ok {
		t.Error("one of four probes is enough")
	}
}

func TestOnWire(t *testing.T) {
	for _, c := range []struct{ bytes, want int }{{60, 60}, {1514, 1514}, {1460*2 + 54, 3028}, {1460*3 + 54, 1514 * 3}, {1460*3 + 1 + 54, 1514*3 + 55}} {
		if got := (arrival{bytes: c.bytes}).onWire(1514); got != c.want {
			t.Errorf("%d bytes take %d on the wire, want %d", c.bytes, got, c.want)
		}
	}
}
