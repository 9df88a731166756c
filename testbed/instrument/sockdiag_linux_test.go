package instrument

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// diagOrSkip opens the socket diagnostics of the test's own namespace; only a
// kernel without them skips.
func diagOrSkip(t testing.TB) *sockDiag {
	t.Helper()
	d, err := openSockDiag(here{})
	if err == nil {
		err = d.dump(func(*tcpState) {})
	}
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPROTONOSUPPORT) {
		t.Skip("this kernel has no TCP socket diagnostics")
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// talk opens a connection over loopback and sends n bytes through it.
func talk(t *testing.T, network, address string, n int) *net.TCPConn {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Skipf("no %s loopback here: %v", network, err)
	}
	t.Cleanup(func() { _ = l.Close() })
	received := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			received <- err
			return
		}
		t.Cleanup(func() { _ = c.Close() })
		_, err = io.CopyN(io.Discard, c, int64(n))
		received <- err
	}()
	c, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write(make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// find looks up the flow of a connection in a dump.
func find(t *testing.T, d *sockDiag, c *net.TCPConn) (tcpState, bool) {
	t.Helper()
	local := c.LocalAddr().(*net.TCPAddr).AddrPort()
	remote := c.RemoteAddr().(*net.TCPAddr).AddrPort()
	var found tcpState
	ok := false
	err := d.dump(func(s *tcpState) {
		if s.key.local == netip.AddrPortFrom(local.Addr().Unmap(), local.Port()) && s.key.remote.Port() == remote.Port() {
			found, ok = *s, true
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, ok
}

func TestSockDiagAgreesWithTheSocket(t *testing.T) {
	d := diagOrSkip(t)
	defer func() { _ = d.close() }()
	for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		t.Run(network, func(t *testing.T) {
			const bytes = 100_000
			c := talk(t, network, address, bytes)
			// All is received, so it will all be acknowledged.
			var s tcpState
			poll(t, "the acknowledgement", func() bool {
				var ok bool
				s, ok = find(t, d, c)
				return ok && s.acked >= bytes
			})
			raw, err := c.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			var info *unix.TCPInfo
			if err := raw.Control(func(fd uintptr) {
				info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
			}); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.cwnd, float64(info.Snd_cwnd)*float64(info.Snd_mss); got != want {
				t.Errorf("cwnd %g bytes, the socket says %g", got, want)
			}
			if got, want := s.rtt, float64(info.Rtt)/1e6; math.Abs(got-want) > 1e-9 {
				t.Errorf("RTT %g s, the socket says %g", got, want)
			}
			if s.retransmitted != uint64(info.Total_retrans) || s.acked != info.Bytes_acked || !s.sends() {
				t.Errorf("flow %+v, the socket says %+v", s, info)
			}
			if info.Delivery_rate > 0 && s.delivery <= 0 {
				t.Errorf("delivery rate %g, the socket says %d", s.delivery, info.Delivery_rate)
			}
		})
	}
}

func TestSockDiagLooksFlowsUp(t *testing.T) {
	d := diagOrSkip(t)
	defer func() { _ = d.close() }()
	for network, address := range map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"} {
		t.Run(network, func(t *testing.T) {
			s, ok := find(t, d, talk(t, network, address, 1000))
			if !ok {
				t.Fatal("a dump does not show the flow")
			}
			gone, reused := s.key, s.key
			gone.local = netip.AddrPortFrom(s.key.local.Addr(), 1)
			reused.cookie++
			var got []tcpState
			for range 2 { // a second time: nothing of the first is left over
				got = got[:0]
				err := d.lookup([]tcpKey{gone, s.key, reused, s.key}, func(s *tcpState) { got = append(got, *s) })
				if err != nil {
					t.Fatal(err)
				}
			}
			if len(got) != 2 || got[0].key != s.key || got[0].cwnd != s.cwnd || !got[0].sends() {
				t.Errorf("looked up %+v, want twice %+v", got, s)
			}
		})
	}
}

func TestTCPInfoFollowsAProgram(t *testing.T) {
	diagOrSkip(t)
	target, series := shortTarget(0, time.Hour)
	target.Nodes = map[string]Namespace{"left1": here{}, "right1": here{}}
	target.Processes = []Process{{Name: "w.run", Node: "left1", Kind: "command"}, {Name: "bulk.sender", Node: "right1", Kind: "tcp"}}
	c := newTCPInfo().(*TCPInfo)
	if got := c.nodes(&target); len(got) != 1 || got[0] != "left1" {
		t.Fatalf("nodes %v, want left1 alone", got)
	}
	conn := talk(t, "tcp4", "127.0.0.1:0", 50_000)
	running, err := c.Start(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	poll(t, "two samples", func() bool { return len(series.of("it.left1", "rtt_s")) >= 2 })
	r, err := running.Stop()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, rec := range r.Records {
		if rec.Text["local"] == conn.LocalAddr().String() && rec.Text["remote"] == conn.RemoteAddr().String() {
			found = true
			if rec.Values["cwnd_mean_bytes"] <= 0 || rec.Values["rtt_mean_s"] <= 0 {
				t.Errorf("record %+v", rec)
			}
		}
	}
	if !found {
		t.Errorf("no record of %s in %+v", conn.LocalAddr(), r.Records)
	}
	for _, name := range []string{"flows_count", "rtt_p50_s", "rtt_p99_s", "rtt_min_s", "cwnd_mean_bytes"} {
		if r.Values[name] <= 0 {
			t.Errorf("%s is %g", name, r.Values[name])
		}
	}
	if r.CPUSeconds <= 0 {
		t.Error("measuring cost nothing")
	}
}

func BenchmarkSockDiagDump(b *testing.B) {
	d := diagOrSkip(b)
	defer func() { _ = d.close() }()
	flows := 0
	for b.Loop() {
		if err := d.dump(func(*tcpState) { flows++ }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(flows)/float64(b.N), "flows/op")
}

func BenchmarkSockDiagLookup(b *testing.B) {
	d := diagOrSkip(b)
	defer func() { _ = d.close() }()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Skip(err)
	}
	defer func() { _ = l.Close() }()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	var keys []tcpKey
	if err := d.dump(func(s *tcpState) { keys = append(keys, s.key) }); err != nil {
		b.Fatal(err)
	}
	keys = keys[:min(len(keys), 1)]
	flows := 0
	for b.Loop() {
		if err := d.lookup(keys, func(*tcpState) { flows++ }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(flows)/float64(b.N), "flows/op")
}
