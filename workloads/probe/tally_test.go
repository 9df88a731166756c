package probe

import (
	"math"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// sent books n requests, one a millisecond from 0.
func sent(t *tally, n int) {
	for i := range int64(n) {
		t.send(i*ms, i*ms+100)
	}
}

func TestTally(t *testing.T) {
	y := newTally(50*time.Millisecond, 0, 1000*ms)
	sent(y, 10)
	y.reply(0, 100+20*ms)
	y.reply(2, 2*ms+100+21*ms)
	y.reply(1, 1*ms+100+30*ms) // overtaken by 2
	y.reply(1, 1*ms+100+31*ms) // twice
	y.reply(77, 5*ms)          // nobody asked
	for i := int64(5); i < 10; i++ {
		y.reply(uint64(i), i*ms+100+20*ms)
	} // 4 never comes
	y.reply(3, 3*ms+100+60*ms) // too late: lost, not reordered
	v, h := y.summary()
	for name, want := range map[string]float64{
		"sent_count": 10, "received_count": 8, "late_count": 1, "duplicates_count": 1, "reordered_count": 1,
		"loss_ratio": 0.2, "rtt_min_s": 0.020, "rtt_p50_s": 0.020, "rtt_max_s": 0.030, "rtt_p90_s": 0.030,
		"delay_variation_p99_s": 0.010, "delay_variation_p50_s": 0, "rtt_mean_s": (6*20 + 21 + 30) / 8.0 / 1e3,
	} {
		if math.Abs(v[name]-want) > 1e-9 {
			t.Errorf("%s = %v, want %v", name, v[name], want)
		}
	}
	if h.Count() != 8 || v["send_lateness_p99_s"] != 100e-9 {
		t.Errorf("%d values in the histogram, lateness %v", h.Count(), v["send_lateness_p99_s"])
	}
}

func TestTallyCountsOnlyTheWindow(t *testing.T) {
	y := newTally(time.Second, 3*ms, 6*ms)
	sent(y, 10)
	for i := range int64(10) {
		if i != 4 && i != 8 {
			y.reply(uint64(i), i*ms+10*ms)
			y.reply(uint64(i), i*ms+11*ms)
		}
	}
	v, _ := y.summary()
	if v["sent_count"] != 3 || v["received_count"] != 2 || v["duplicates_count"] != 2 || math.Abs(v["loss_ratio"]-1.0/3) > 1e-12 {
		t.Errorf("%v", v)
	}
}

func TestTallySettles(t *testing.T) {
	y := newTally(50*time.Millisecond, 0, 1000*ms)
	if !y.settled(0) {
		t.Error("waits for nothing")
	}
	sent(y, 2)
	y.reply(0, 20*ms)
	if y.settled(50 * ms) {
		t.Error("does not wait for the last reply")
	}
	if !y.settled(60 * ms) {
		t.Error("waits for a reply that would not count")
	}
	y.reply(1, 21*ms)
	if !y.settled(21 * ms) {
		t.Error("waits though all have come")
	}
}

func TestTallyUnsent(t *testing.T) {
	y := newTally(50*time.Millisecond, 0, 1000*ms)
	sent(y, 3)
	y.unsent()
	y.reply(0, 10*ms)
	y.reply(1, 11*ms)
	v, _ := y.summary()
	if v["sent_count"] != 2 || v["send_errors_count"] != 1 || v["loss_ratio"] != 0 || !y.settled(12*ms) {
		t.Errorf("%v", v)
	}
	if v, _ := newTally(1, 0, 1).summary(); len(v) != 6 {
		t.Errorf("nothing sent gives %v", v)
	}
}

func TestEchoKnowsItsOwn(t *testing.T) {
	for _, version := range []int{4, 6} {
		e := echo{version: version, id: 0xbeef, token: 42}
		packet := make([]byte, icmpHeader+tagSize+5)
		e.fill(packet, 70_000) // beyond ICMP's own 16 bits
		if version == 4 && checksum(packet) != 0 {
			t.Errorf("checksum over the packet is %#x", checksum(packet))
		}
		if _, ok := e.parse(packet); ok {
			t.Error("a request was taken for a reply")
		}
		packet[0] = echoReply4
		if version == 6 {
			packet[0] = echoReply6
		}
		if seq, ok := e.parse(packet); !ok || seq != 70_000 {
			t.Errorf("IPv%d: %d, %v", version, seq, ok)
		}
		for name, other := range map[string]echo{"identifier": {version, 1, 42, false}, "token": {version, 0xbeef, 43, false}, "version": {10 - version, 0xbeef, 42, false}} {
			if _, ok := other.parse(packet); ok {
				t.Errorf("IPv%d: another %s was taken for ours", version, name)
			}
		}
		if _, ok := (&echo{version, 1, 42, true}).parse(packet); !ok {
			t.Error("the kernel's own identifier was refused")
		}
		if _, ok := e.parse(packet[:icmpHeader+3]); ok {
			t.Error("a cut packet was read")
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{0x45, 0, 0, 20, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, packet []byte) {
		for _, v := range []int{4, 6} {
			e := echo{version: v}
			e.parse(packet)
			e.parse(stripIPv4(packet))
		}
	})
}
