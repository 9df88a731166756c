package runner_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/emul/attr"
	"wirelab/emul/software"
	"wirelab/emul/wire"
	"wirelab/experiments/lang"
	"wirelab/results"
	"wirelab/testbed"
	"wirelab/testbed/instrument"
)

// logged is what the event log of a link says of one direction since arming.
type logged struct {
	packets   int
	lost      []int64 // numbers of the segments that the loss stage dropped
	queueLost int
	worst     time.Duration // longest wait for the start of the transmission
	largest   int           // longest segment, bytes
}

func readLog(t *testing.T, path, direction string) logged {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out logged
	arrived := int64(0)
	for sc := bufio.NewScanner(f); sc.Scan(); {
		c := strings.Split(sc.Text(), ",")
		if len(c) < 6 || c[0] == "time_ns" || c[1] != "arm" && c[3] != direction {
			continue
		}
		at, err := strconv.ParseInt(c[0], 10, 64)
		if err != nil {
			t.Fatalf("event log: %q: %v", sc.Text(), err)
		}
		switch {
		case c[1] == "arm":
			if c[3] == direction || c[3] == "" {
				out = logged{}
			}
		case c[1] == "enqueue":
			out.packets++
			arrived = at
			n, _ := strconv.Atoi(c[5])
			out.largest = max(out.largest, n)
		case c[1] == "dequeue":
			out.worst = max(out.worst, time.Duration(at-arrived))
		case c[1] == "drop" && c[2] == "loss":
			n, err := strconv.ParseInt(c[4], 10, 64)
			if err != nil {
				t.Fatalf("event log: %q: %v", sc.Text(), err)
			}
			out.lost = append(out.lost, n)
		case c[1] == "drop":
			out.queueLost++
		}
	}
	return out
}

// A queue bounds the delay, on a slow link and for senders that hand over
// trains of segments; what it drops is counted as its drops, not as losses. The
// bounds are those of the computed times, which no busy host can change.
func TestQueueBoundsTheDelay(t *testing.T) {
	for _, c := range []struct {
		name, rate, queue string
		bound             time.Duration
	}{
		// 100 ms of queue and what is left of the packet in transmission.
		{"300 kbit/s, queue of 100 ms", "300kbit", "100ms", 141 * time.Millisecond},
		// A hundred packets of 121.12 us and what is left of one.
		{"100 Mbit/s, 100 packets", "100mbit", "100pkt", 12240 * time.Microsecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mustRun(t, `
experiment "queue" {
  duration    = "3s"
  repetitions = 1
}
node "a" {}
node "b" {}
link "l" {
  between   = ["a", "b"]
  rate      = "`+c.rate+`"
  queue     = "`+c.queue+`"
  rtt       = "20ms"
  event_log = true
}
workload "tcp" "bulk" {
  from       = "a"
  to         = "b"
  congestion = "cubic"
  stop       = "2500ms" # its last packets have crossed when the run ends
}
workload "ping" "probe" {
  from     = "a"
  to       = "b"
  interval = "50ms"
  wait     = "3s"
}
`+tolerant)
			got := readLog(t, m.file(0, "l.events.csv"), "forward")
			if got.worst > c.bound || got.worst < c.bound/2 {
				t.Errorf("the longest wait was %v, want at most %v and a queue that was used", got.worst, c.bound)
			}
			if got.largest > 1514 || got.packets == 0 {
				t.Errorf("%d packets, the longest of %d bytes", got.packets, got.largest)
			}
			queue, loss := m.value(t, 0, "net.l.queue_drops_count"), m.value(t, 0, "net.l.loss_drops_count")
			if queue == 0 || int(queue) > got.queueLost || loss != 0 || len(got.lost) != 0 || m.value(t, 0, "net.l.overload_drops_count") != 0 {
				t.Errorf("%v queue drops (%d in the log), %v losses (%d in the log)", queue, got.queueLost, loss, len(got.lost))
			}
			base := m.value(t, 0, "probe.rtt_min_s")
			t.Logf("longest wait %v; ping: base %.1f ms, p50 +%.1f ms, p99 +%.1f ms; %v queue drops", got.worst, base*1e3,
				(m.value(t, 0, "probe.rtt_p50_s")-base)*1e3, (m.value(t, 0, "probe.rtt_p99_s")-base)*1e3, queue)
		})
	}
}

// Jitter keeps the order: ten thousand datagrams over 20 ms with 5 ms of jitter
// arrive without one overtaking another.
func TestJitterKeepsTheOrderOfDatagrams(t *testing.T) {
	needRoot(t)
	bed, err := testbed.Up(t.Context(), testbed.Topology{
		Name: "net", Nodes: []testbed.Node{{Name: "a", Kind: testbed.KindHost}, {Name: "b", Kind: testbed.KindHost}},
		Links: []testbed.Link{{Name: "l", A: "a", B: "b", Backend: software.Name, Forward: emul.Impairment{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond}}},
	}, testbed.Options{RunID: testbed.NewRunID(), Dir: t.TempDir(), Backend: software.New(software.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bed.Close(); err != nil {
			t.Error(err)
		}
	})
	from, to := datagrams(t, bed)
	const count = 10000
	go func() {
		var b [100]byte
		for i := range count {
			binary.BigEndian.PutUint32(b[:], uint32(i))
			_, _ = from.Write(b[:]) // what is refused does not arrive
			if i%20 == 19 {
				time.Sleep(2 * time.Millisecond) // some 10 000 a second
			}
		}
	}()
	inversions, arrived, last := 0, 0, int64(-1)
	var b [200]byte
	for last < count-1 {
		_ = to.SetReadDeadline(time.Now().Add(3 * time.Second))
		if _, err := to.Read(b[:]); err != nil {
			break
		}
		arrived++
		if n := int64(binary.BigEndian.Uint32(b[:])); n < last {
			inversions++
		} else {
			last = n
		}
	}
	if inversions != 0 || arrived < count*99/100 {
		t.Errorf("%d of %d datagrams arrived, %d inversions", arrived, count, inversions)
	}
	t.Logf("%d arrived, %d inversions", arrived, inversions)
}

// datagrams connects a to b with UDP sockets that hold much.
func datagrams(t *testing.T, bed *testbed.Testbed) (from, to *net.UDPConn) {
	t.Helper()
	addr := bed.Host("b").Addresses()[0].IPv4.Addr().AsSlice()
	open := func(node string, f func() (*net.UDPConn, error)) (c *net.UDPConn) {
		if err := bed.Host(node).Do(func() (err error) {
			c, err = f()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		raw, err := c.SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) })
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	to = open("b", func() (*net.UDPConn, error) { return net.ListenUDP("udp", &net.UDPAddr{IP: addr}) })
	from = open("a", func() (*net.UDPConn, error) { return net.DialUDP("udp", nil, to.LocalAddr().(*net.UDPAddr)) })
	return from, to
}

// Jitter costs TCP little, as it does not reorder.
func TestJitterLeavesTCPAlone(t *testing.T) {
	m := mustRun(t, `
experiment "jitter" {
  duration    = "4s"
  warmup      = "2s"
  repetitions = 1
}
sweep {
  jitter = ["0ms", "5ms"]
}
node "a" {}
node "b" {}
link "l" {
  between = ["a", "b"]
  rate    = "50mbit"
  delay   = "20ms"
  jitter  = sweep.jitter
}
workload "tcp" "bulk" {
  from       = "a"
  to         = "b"
  congestion = "cubic"
}
`+tolerant)
	goodput := map[string]float64{}
	for i, r := range m.runs {
		goodput[r.Point.ID] = m.value(t, i, "bulk.goodput_bps")
		t.Logf("%s: %.1f Mbit/s, %v retransmissions, %v spurious", r.Point.ID, goodput[r.Point.ID]/1e6,
			m.value(t, i, "bulk.retransmissions_count"), m.value(t, i, "bulk.spurious_retransmissions_count"))
	}
	// The rows of published complaints are at 0.06; 0.8 on an idle host.
	if ratio := goodput["jitter=5ms"] / goodput["jitter=0ms"]; !(ratio > 0.5) {
		t.Errorf("with jitter TCP carries %.2f of what it does without", ratio)
	}
}

const lossy = `
experiment "loss" {
  duration    = "20s"
  repetitions = 1
  seed        = 42
}
node "a" {}
node "b" {}
link "l" {
  between   = ["a", "b"]
  rate      = "300mbit"
  queue     = "20000pkt" # what the queue drops is not lost
  rtt       = "1ms"
  event_log = true
  forward {
    loss = "1%"
  }
}
workload "tcp" "bulk" {
  from       = "a"
  to         = "b"
  congestion = "cubic"
  flows      = 8
  bytes      = "4MB"
}
` + tolerant

// Two runs of one seed lose the same segments, and as many as was asked.
func TestTwoRunsLoseTheSameSegments(t *testing.T) {
	const n = 20000
	var lists [2][]int64
	for i := range lists {
		m := mustRun(t, lossy)
		got := readLog(t, m.file(0, "l.events.csv"), "forward")
		if got.packets < n {
			t.Fatalf("only %d segments crossed", got.packets)
		}
		for _, k := range got.lost {
			if k < n {
				lists[i] = append(lists[i], k)
			}
		}
		if m.value(t, 0, "net.l.loss_drops_count") == 0 || m.value(t, 0, "net.l.reverse.loss_drops_count") != 0 {
			t.Error("losses are not where they were asked for")
		}
	}
	if !slices.Equal(lists[0], lists[1]) {
		t.Errorf("equal runs lost %v and %v", lists[0], lists[1])
	}
	// 1 % within 1.96 standard deviations. The seed fixes the count.
	if ratio := float64(len(lists[0])) / n; ratio < 0.00862 || ratio > 0.01138 {
		t.Errorf("%.3f %% of %d segments were lost, asked 1 %%", 100*ratio, n)
	}
	t.Logf("%d of %d segments lost, twice the same", len(lists[0]), n)
}

// Every packet that a capture shows at the receiver has the checksum that its
// bytes need, or, where the sender left it to its device, the right seed of it.
func TestCaptureHasNoBadChecksum(t *testing.T) {
	m := mustRun(t, `
experiment "checksums" {
  duration    = "2s"
  repetitions = 1
}
node "a" {}
node "b" {}
link "l" {
  between = ["a", "b"]
  rate    = "100mbit"
  rtt     = "4ms"
  loss    = "0.5%" # splits trains
}
workload "tcp" "four" {
  from       = "a"
  to         = "b"
  congestion = "cubic"
}
workload "tcp" "six" {
  from       = "a"
  to         = "b"
  congestion = "reno"
  ip         = "6"
}
instrument "capture" "file" {
  on      = "b"
  snaplen = "128KiB"
  ring    = "64MiB"
}
`+tolerant)
	f, err := os.Open(m.file(0, "file.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := wire.NewPcapReader(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if p.Flags&3 != wire.PcapInbound {
			continue
		}
		h := wire.Parse(p.Data)
		if h.Version == 4 && wire.Checksum(p.Data[h.L3:h.L3+int(p.Data[h.L3]&15)*4]) != 0 {
			t.Fatalf("an IPv4 header has a wrong checksum: %x", p.Data[:h.L4])
		}
		if h.Proto != wire.ProtoTCP || h.Payload == 0 {
			continue
		}
		field := binary.BigEndian.Uint16(p.Data[h.L4+16:])
		want, ok := h.TransportChecksum(p.Data)
		kind := "complete"
		if p.Flags&wire.PcapChecksumNotReady != 0 {
			kind = "seeded"
			want = h.PseudoHeader(p.Data, len(p.Data)-h.L4).Fold()
		}
		if !ok || field != want {
			t.Fatalf("a packet of IPv%d, %d bytes, %s checksum: %#x, want %#x", h.Version, len(p.Data), kind, field, want)
		}
		seen[kind]++
		seen["v"+strconv.Itoa(int(h.Version))]++
	}
	if seen["v4"] < 100 || seen["v6"] < 100 {
		t.Errorf("too few packets to tell: %v", seen)
	}
	for _, v := range []string{"file.packets_dropped_count", "net.l.overload_drops_count"} {
		if n := m.value(t, 0, v); n != 0 {
			t.Logf("%s: %v", v, n)
		}
	}
	t.Logf("checked %v", seen)
}

// idle claims to be the software backend and impairs nothing.
type idle struct{ *software.Backend }

func (b idle) Join(ctx context.Context, cables []emul.Cable) (emul.Session, error) {
	for i := range cables {
		cables[i].Forward, cables[i].Reverse = emul.Impairment{}, emul.Impairment{}
	}
	return b.Backend.Join(ctx, cables)
}

const asked = `
experiment "asked" {
  duration    = "300ms"
  repetitions = 2
}
node "a" {}
node "b" {}
link "l" {
  between = ["a", "b"]
  rtt     = "50ms"
  %s
}
workload "ping" "probe" {
  from     = "a"
  to       = "b"
  interval = "20ms"
}
check "never judged" {
  condition = result.probe.rtt_p50_s >= 0
}
`

// A backend that reports success and does nothing is found out: no run is
// valid, no check judged, and the reason names asked and measured.
func TestIdleBackendIsFoundOut(t *testing.T) {
	for _, rate := range []string{"", `rate = "10mbit"`} {
		m := makeRuns(t, strings.Replace(asked, "%s", rate, 1), func(s *settings) {
			s.backend, s.attempts = idle{software.New(software.Options{})}, 2
		})
		if m.err != nil {
			t.Fatal(m.err)
		}
		if len(m.runs) != 2 || m.seen.again != 2 {
			t.Errorf("%d runs, %d repeated", len(m.runs), m.seen.again)
		}
		for _, r := range m.runs {
			if r.Valid || r.Attempts != 2 || len(r.Checks) != 0 || len(r.Reasons) == 0 || !strings.Contains(strings.Join(r.Reasons, " "), "50") {
				t.Errorf("run %d: valid %v, %d attempts, checks %v, reasons %v", r.Index, r.Valid, r.Attempts, r.Checks, r.Reasons)
			}
			if rate != "" && !strings.Contains(strings.Join(r.Reasons, " "), "10 Mbit/s") {
				t.Errorf("run %d does not mention the rate: %v", r.Index, r.Reasons)
			}
			if c := r.Links[0].Calibration; c == nil || c.OK || c.RTTAskedS != 0.05 || c.RTTMeasuredS > 0.04 {
				t.Errorf("calibration %+v", c)
			}
		}
		t.Log(m.runs[0].Reasons)
	}
}

// lacking is an instrument that this host cannot run though the file requires it.
type lacking struct{}

func (*lacking) Validate() []attr.Problem       { return nil }
func (*lacking) Needs() (nodes, links []string) { return nil, nil }
func (*lacking) Metrics() []results.MetricDef   { return nil }
func (*lacking) Start(context.Context, instrument.Target) (instrument.Running, error) {
	return nil, errors.Join(errors.New("no such counter"), instrument.ErrRequired)
}

// What the file requires and the host lacks ends the experiment: it is no
// failed run.
func TestRequiredInstrumentEndsTheExperiment(t *testing.T) {
	k := lang.BuiltIn()
	k.Instruments = append(k.Instruments, instrument.Kind{Name: "lacking", Doc: "A counter that is not there.", New: func() instrument.Instrument { return &lacking{} }})
	m := makeRuns(t, strings.Replace(asked, "%s", "", 1)+"\ninstrument \"lacking\" \"counter\" {}\n", func(s *settings) { s.kinds = k })
	if !errors.Is(m.err, instrument.ErrRequired) || len(m.runs) != 0 {
		t.Errorf("error %v after %d runs, want the required instrument at once", m.err, len(m.runs))
	}
	if left, err := os.ReadDir(m.dir.Path() + "/runs"); err != nil || len(left) != 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// A thousand flows of one workload over an emulated link: each has a record.
// What reading their state cost is recorded.
func TestThousandFlowsOverALink(t *testing.T) {
	m := mustRun(t, `
experiment "thousand" {
  duration    = "3s"
  warmup      = "2s"
  repetitions = 1
}
node "a" {}
node "b" {}
link "l" {
  between = ["a", "b"]
  rate    = "1gbit"
  rtt     = "10ms"
}
workload "tcp" "thin" {
  from    = "a"
  to      = "b"
  flows   = 1000
  pacing  = "100kbit"
  stagger = "500ms"
}
`+tolerant)
	flows := m.runs[0].Flows["thin"]
	if len(flows) != 1000 {
		t.Fatalf("%d flows have a record", len(flows))
	}
	silent := 0
	for i, f := range flows {
		if _, ok := f["cwnd_mean_bytes"]; !ok {
			t.Fatalf("flow %d has no congestion window: %v", i, f)
		}
		if f["goodput_bps"] == 0 {
			silent++
		}
	}
	if silent > 0 || m.value(t, 0, "thin.failed_count") != 0 {
		t.Errorf("%d flows delivered nothing, %v failed", silent, m.value(t, 0, "thin.failed_count"))
	}
	cost := m.value(t, 0, "thin.tcp_info_load_ratio")
	if cost <= 0 {
		t.Error("the cost of reading is not recorded")
	}
	t.Logf("reading TCP_INFO cost %.2f %% of a core, every %.0f ms; instruments %v", 100*cost, 1e3*m.value(t, 0, "thin.tcp_info_interval_s"), m.runs[0].Overhead)
}

// Which offloads are on at the nodes is recorded: of an emulated link, not those
// whose packets a backend cannot carry.
func TestOffloadsAreRecorded(t *testing.T) {
	m := mustRun(t, strings.Replace(asked, "%s", "", 1)+tolerant)
	got := m.runs[0].Links[0].Offloads
	if len(got) != 2 {
		t.Fatalf("offloads %v", got)
	}
	for device, on := range got {
		if !slices.Contains(on, "tx-tcp-segmentation") || slices.Contains(on, "tx-gre-segmentation") {
			t.Errorf("%s: %v", device, on)
		}
	}
	t.Log(got)
}
