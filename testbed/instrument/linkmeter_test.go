package instrument

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"wirelab/emul"
	"wirelab/emul/hist"
	"wirelab/emul/unit"
)

func TestLinkValuesCoverTheWindowOnly(t *testing.T) {
	early, all := new(hist.Histogram), new(hist.Histogram)
	early.RecordN(5_000_000, 10)
	all.RecordN(5_000_000, 10)
	all.RecordN(100, 90)
	all.RecordN(120, 10)
	start := emul.DirectionCounters{PacketsIn: 100, PacketsOut: 90, BytesIn: 1000, BytesOut: 900, QueueDrops: 10, DeadlineMisses: 10, DepartureError: early}
	end := emul.DirectionCounters{PacketsIn: 1100, PacketsOut: 980, BytesIn: 1_001_000, BytesOut: 900_900, QueueDrops: 100, LossDrops: 10, DeadlineMisses: 10, DepartureError: all}
	v := LinkValues(start, end, 10*unit.Rate(1e6), 2, []int64{0, 100, 200, 300})
	for name, x := range map[string]float64{
		"packets_in_count": 1000, "packets_out_count": 890, "bytes_in_bytes": 1_000_000, "bytes_out_bytes": 900_000,
		"throughput_bps": 3.6e6, "utilization_ratio": 0.36, "queue_drops_count": 90, "queue_drop_ratio": 0.09,
		"loss_drops_count": 10, "loss_ratio": 10.0 / 900, "overload_drops_count": 0, "deadline_misses_count": 0,
		"backlog_mean_bytes": 150, "backlog_p99_bytes": 300, "backlog_max_bytes": 300, "queueing_delay_p99_s": 300 * 8 / 1e7,
		"departure_error_p50_s": 100e-9, "departure_error_p99_s": 120e-9, "departure_error_max_s": 120e-9,
	} {
		want(t, v, name, x)
	}
	defined := map[string]bool{}
	for _, d := range LinkMetrics(true) {
		defined[d.Name] = true
	}
	for name := range v {
		if !defined[name] {
			t.Errorf("%s is not defined by LinkMetrics", name)
		}
	}
	if len(v) != len(defined) {
		t.Errorf("%d values, %d definitions", len(v), len(defined))
	}
}

func TestLinkValuesLeaveOutWhatHasNoMeaning(t *testing.T) {
	v := LinkValues(emul.DirectionCounters{}, emul.DirectionCounters{}, 0, 1, nil)
	absent(t, v, "loss_ratio", "queue_drop_ratio", "utilization_ratio", "backlog_mean_bytes", "queueing_delay_p99_s", "departure_error_p99_s")
	want(t, v, "throughput_bps", 0)
	if v := LinkValues(emul.DirectionCounters{}, emul.DirectionCounters{}, 1000, 1, nil); v["backlog_max_bytes"] != 0 || len(v) == 0 {
		t.Errorf("unexpected values %v", v)
	}
}

// steadyLink is an emulated link that carries 1000 bytes each millisecond, and
// holds 500 bytes.
func steadyLink(name string) func() (emul.Snapshot, error) {
	begin := time.Now()
	return func() (emul.Snapshot, error) {
		ms := uint64(time.Since(begin) / time.Millisecond)
		h := new(hist.Histogram)
		h.RecordN(50_000, ms)
		return emul.Snapshot{
			TimeNS: time.Now().UnixNano(), CPUNS: int64(ms) * 400_000, Wakeups: ms,
			Links: []emul.LinkCounters{{Name: name, Forward: emul.DirectionCounters{
				PacketsIn: ms, PacketsOut: ms, BytesIn: ms * 1000, BytesOut: ms * 1000, BacklogBytes: 500, DepartureError: h,
			}}},
		}, nil
	}
}

// bottleneck is a target with one emulated link of 10 Mbit/s forward, and a
// window of 100 to 600 ms.
func bottleneck(counters func() (emul.Snapshot, error)) Target {
	return Target{
		Name: "backlog", T0NS: time.Now().UnixNano(), StartS: 0.1, EndS: 0.6, Counters: counters,
		Links: []Link{{Name: "net.bottleneck", Backend: "software", Forward: unit.Rate(10e6)}},
	}
}

// meterOf runs a LinkMeter in virtual time.
func meterOf(t *testing.T, target Target, o LinkMeterOptions) (Result, error) {
	t.Helper()
	m := &LinkMeter{target: target, options: o, nodes: map[string]*netdev{}}
	if err := m.add(target.Links[0]); err != nil {
		t.Fatal(err)
	}
	m.loop = newLoop(&m.target, o.Interval, m.step)
	m.loop.clock = bubbleClock(0)
	m.loop.begin(context.Background())
	time.Sleep(time.Second)
	return m.Stop()
}

// meter measures the bottleneck.
func meter(t *testing.T, counters func() (emul.Snapshot, error), o LinkMeterOptions) (Result, *samples, error) {
	t.Helper()
	s := &samples{}
	target := bottleneck(counters)
	target.Record = s.add
	r, err := meterOf(t, target, o)
	return r, s, err
}

func TestLinkMeterMeasuresAnEmulatedLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, err := meter(t, steadyLink("bottleneck"), LinkMeterOptions{Interval: 20 * time.Millisecond, MaxDepartureError: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		forward, reverse := r.Links["net.bottleneck"], r.Links["net.bottleneck.reverse"]
		want(t, forward, "throughput_bps", 8e6)
		want(t, forward, "utilization_ratio", 0.8)
		want(t, forward, "backlog_mean_bytes", 500)
		want(t, forward, "packets_out_count", 500)
		want(t, reverse, "throughput_bps", 0)
		absent(t, reverse, "utilization_ratio", "backlog_mean_bytes")
		want(t, r.Values, "forwarder_cpu_ratio", 0.4)
		want(t, r.Values, "forwarder_wakeups_hz", 1000)
		if u := s.of("net.bottleneck.forward", "utilization_ratio"); len(u) != 30 || u[7] != 0.8 {
			t.Errorf("utilization series %v, want 30 times 0.8", u)
		}
		if len(r.Invalid)+len(r.Notes) != 0 {
			t.Errorf("unexpected doubts %v %v", r.Invalid, r.Notes)
		}
	})
}

func TestLinkMeterWithoutSeriesStillGivesTotals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, err := meter(t, steadyLink("net.bottleneck"), LinkMeterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, r.Links["net.bottleneck"], "utilization_ratio", 0.8)
		absent(t, r.Links["net.bottleneck"], "backlog_mean_bytes")
		if n := len(s.of("net.bottleneck.forward", "queue_drops_count")); n > 1 {
			t.Errorf("%d samples, want at most the one between the edges", n)
		}
	})
}

func TestLinkMeterFindsWhatMakesARunInvalid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		steady := steadyLink("net.bottleneck")
		counters := func() (emul.Snapshot, error) {
			s, err := steady()
			d := &s.Links[0].Forward
			d.OverloadDrops, d.DeadlineMisses = d.PacketsIn/10, d.PacketsIn
			d.DepartureError = new(hist.Histogram)
			d.DepartureError.RecordN(3_000_000, d.PacketsIn)
			s.CPUNS = int64(d.PacketsIn) * 999_000
			return s, err
		}
		r, _, err := meter(t, counters, LinkMeterOptions{Interval: 20 * time.Millisecond, MaxDepartureError: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(r.Invalid, "\n")
		if len(r.Invalid) != 2 || !strings.Contains(all, "lost 50 packets") || !strings.Contains(all, "late") {
			t.Errorf("reasons %q, want 50 lost packets and late departures", r.Invalid)
		}
		if !strings.Contains(strings.Join(r.Notes, "\n"), "shaper-bound") {
			t.Errorf("notes %q do not say shaper-bound", r.Notes)
		}
	})
}

func TestLinkMeterReadsHistogramsAtTheEdgesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, light := 0, 0
		steady := steadyLink("net.bottleneck")
		target := bottleneck(func() (emul.Snapshot, error) {
			full++
			s, err := steady()
			s.Links[0].EventLogLost = 7
			return s, err
		})
		target.CountersLight = func() (emul.Snapshot, error) {
			light++
			s, err := steady()
			s.Links[0].Forward.DepartureError = nil
			return s, err
		}
		r, err := meterOf(t, target, LinkMeterOptions{Interval: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		want(t, r.Links["net.bottleneck"], "departure_error_p50_s", 50e-6)
		if full != 2 || light != 59 {
			t.Errorf("%d full and %d light readings, want 2 and 59", full, light)
		}
		if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "lacks 7 lines") {
			t.Errorf("notes %q", r.Notes)
		}
	})
}

func TestLinkMeterReportsCountersThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		_, _, err := meter(t, func() (emul.Snapshot, error) { return emul.Snapshot{}, gone }, LinkMeterOptions{})
		if !errors.Is(err, gone) {
			t.Errorf("error %v, want %v", err, gone)
		}
		if _, _, err := meter(t, steadyLink("other"), LinkMeterOptions{}); err == nil || !strings.Contains(err.Error(), "net.bottleneck") {
			t.Errorf("error %v does not name the missing link", err)
		}
	})
}

func TestStartLinkMeterRefusesWhatItCannotRead(t *testing.T) {
	for name, target := range map[string]Target{
		"no counters":  {Links: []Link{{Name: "net.l", Backend: "software"}}},
		"no devices":   {Links: []Link{{Name: "net.l", Backend: "none"}}},
		"no namespace": {Links: []Link{{Name: "net.l", Backend: "none"}}, Devices: map[string][2]Device{"net.l": {}}},
	} {
		if _, err := StartLinkMeter(context.Background(), target, LinkMeterOptions{}); err == nil || !strings.Contains(err.Error(), "net.l") {
			t.Errorf("%s: error %v does not name the link", name, err)
		}
	}
}

const netdevText = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       2    0    0    0     0          0         0      100       2    0    0    0     0       0          0
  eth0:    5000      40    0    3    0     0          0         0     7000      60    0    4    0     0       0          0
`

func TestNetdevParses(t *testing.T) {
	d := &netdev{devices: map[string]*devCounters{}}
	eth, other := d.want("eth0"), d.want("eth1")
	if err := d.parse([]byte(netdevText)); err != nil {
		t.Fatal(err)
	}
	if *eth != (devCounters{rxBytes: 5000, rxPackets: 40, rxDropped: 3, txBytes: 7000, txPackets: 60, txDropped: 4, seen: true}) || other.seen {
		t.Errorf("eth0 %+v, eth1 %+v", *eth, *other)
	}
	if err := d.parse([]byte("eth0: 1 2 3\n")); err == nil {
		t.Error("a line of three counters was accepted")
	}
	b := bareDirection(devCounters{txBytes: 10, txPackets: 5, txDropped: 2}, devCounters{rxBytes: 8, rxPackets: 4, rxDropped: 1})
	if b.PacketsIn != 7 || b.PacketsOut != 4 || b.QueueDrops != 3 || b.BytesIn != 10 || b.BytesOut != 8 {
		t.Errorf("bare direction %+v", b)
	}
}
