package instrument

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

// infoBytes is a struct tcp_info of n bytes.
func infoBytes(n int) []byte {
	b := make([]byte, 400)
	ne := binary.NativeEndian
	for at, v := range map[int]uint32{tcpMSS: 1448, tcpRTT: 40_000, tcpCwnd: 10, tcpRetrans: 7, tcpMinRTT: 39_000, tcpDataOut: 5} {
		ne.PutUint32(b[at:], v)
	}
	ne.PutUint64(b[tcpDelivery:], 1_000_000)
	ne.PutUint64(b[tcpPacing:], ^uint64(0))
	ne.PutUint64(b[tcpBytesAcked:], 12345)
	return b[:n]
}

func TestParseTCPInfoByLength(t *testing.T) {
	var s tcpState
	if parseTCPInfo(infoBytes(tcpInfoLeast-1), &s) {
		t.Error("a structure that is too short was accepted")
	}
	if !parseTCPInfo(infoBytes(tcpInfoLeast), &s) || s.cwnd != 14480 || s.rtt != 0.04 || s.retransmitted != 7 || s.delivery != 0 || !s.sends() {
		t.Errorf("of an old kernel: %+v", s)
	}
	if !parseTCPInfo(infoBytes(400), &s) || s.minRTT != 0.039 || s.delivery != 8e6 || s.pacing != 0 || s.acked != 12345 {
		t.Errorf("of a newer kernel: %+v", s)
	}
}

func TestParseDiagSurvivesNonsense(t *testing.T) {
	msg := make([]byte, diagMsgLen)
	msg[0] = 2
	info := infoBytes(240)
	attribute := binary.NativeEndian.AppendUint16(nil, uint16(4+len(info)))
	attribute = binary.NativeEndian.AppendUint16(attribute, diagInfo)
	msg = append(append(msg, 5, 0, 99, 0, 1, 0, 0, 0), append(attribute, info...)...) // another attribute first
	if s, ok := parseDiag(msg); !ok || s.cwnd != 14480 {
		t.Fatalf("flow %+v, %t", s, ok)
	}
	for n := range len(msg) {
		if _, ok := parseDiag(msg[:n]); ok {
			t.Fatalf("%d of %d bytes were accepted", n, len(msg))
		}
	}
	msg[diagMsgLen] = 1 // an attribute shorter than its own header
	if _, ok := parseDiag(msg); ok {
		t.Error("a broken attribute was accepted")
	}
}

// fakeDump gives one flow whose retransmissions grow by one per dump, and a
// second one from the fifth dump on.
type fakeDump struct {
	n       uint64
	err     error
	lookups []int // how many flows each was asked for
}

func (f *fakeDump) dump(fn func(*tcpState)) error {
	f.n++
	s := tcpState{length: 400, rtt: 0.02, minRTT: 0.01, cwnd: 1000, retransmitted: f.n, dataSegmentOut: 1, key: tcpKey{cookie: 1}}
	fn(&s)
	if f.n >= 5 {
		s.key.cookie, s.retransmitted, s.cwnd = 2, 3, 3000
		s.key.local = netip.MustParseAddrPort("10.0.0.1:80")
		fn(&s)
		s.key.cookie, s.dataSegmentOut = 3, 0 // only receives
		fn(&s)
	}
	return f.err
}

func (f *fakeDump) lookup(keys []tcpKey, fn func(*tcpState)) error {
	f.lookups = append(f.lookups, len(keys))
	return f.dump(fn)
}

func (f *fakeDump) close() error { return nil }

// followed runs the instrument on a fakeDump for a window of 25 to 65 ms, with
// a clock that says a dump costs as much.
func followed(t *testing.T, d *fakeDump, cost time.Duration) (Result, *samples, error) {
	t.Helper()
	s := &samples{}
	m := &tcpInfo{
		target: Target{Name: "it", T0NS: time.Now().UnixNano(), StartS: 0.025, EndS: 0.065, Record: s.add},
		flows:  map[*tcpNode]map[tcpKey]*tcpFlow{},
	}
	m.add("left1", d)
	m.loop = newLoop(&m.target, 10*time.Millisecond, m.step)
	m.loop.clock = bubbleClock(cost)
	m.loop.begin(context.Background())
	time.Sleep(time.Second)
	r, err := m.Stop()
	return r, s, err
}

func TestTCPInfoCountsTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Readings at 0, 10, 20, [25, 30, 40, 50, 60, 65] ms.
		r, s, err := followed(t, &fakeDump{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		want(t, r.Values, "flows_count", 3)
		// The first flow's counter goes from 4 to 9; what the second did before
		// it was first seen, in the window, counts; so does the receiver's.
		want(t, r.Values, "retransmissions_count", 5+3+3)
		want(t, r.Values, "rtt_min_s", 0.01)
		want(t, r.Values, "cwnd_mean_bytes", (6*1000.0+5*3000)/11)
		if len(r.Records) != 3 || r.Records[1].Flow != 1 || r.Records[1].Text["local"] != "10.0.0.1:80" {
			t.Errorf("records %+v", r.Records)
		}
		if n := len(s.of("it.left1", "cwnd_bytes")); n != 9+5 {
			t.Errorf("%d samples, want 14", n)
		}
	})
}

func TestTCPInfoLooksUpFewFlowsBetweenDearDumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A dump of 150 us may be made every 15 ms for 1 % of a core: at 0, 20,
		// [25, 40, 60 and 65] ms; at 10, 30 and 50 ms there are lookups.
		d := &fakeDump{}
		if _, _, err := followed(t, d, 150*time.Microsecond); err != nil {
			t.Fatal(err)
		}
		if len(d.lookups) != 3 || d.lookups[0] != 1 || d.lookups[2] != 3 {
			t.Errorf("lookups of %v flows, want three, of 1 to 3", d.lookups)
		}
	})
}

func TestTCPInfoReportsADumpThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		if _, _, err := followed(t, &fakeDump{err: broken}, 0); !errors.Is(err, broken) {
			t.Errorf("error %v, want %v", err, broken)
		}
	})
}

func TestTCPInfoNeedsItsNodes(t *testing.T) {
	c := newTCPInfo().(*TCPInfo)
	c.Nodes = []string{"ghost"}
	if _, err := c.Start(context.Background(), Target{}); err == nil {
		t.Error("started on a node that is not there")
	}
	if nodes, _ := c.Needs(); len(nodes) != 1 {
		t.Errorf("needs %v", nodes)
	}
}
