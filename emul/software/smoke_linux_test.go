package software_test

import (
	"io"
	"testing"
	"time"

	"wirelab/emul"
)

func TestDelay(t *testing.T) {
	l := newLab(t, 1500)
	l.join(t, l.cable(emul.Impairment{Delay: 10 * time.Millisecond}, emul.Impairment{Delay: 5 * time.Millisecond}))
	from, to := l.a.udp(t, false), l.b.udp(t, false)
	for range 20 {
		sent := time.Now()
		_, err := from.WriteTo([]byte("hello"), addrOf(to))
		check(t, err)
		b := make([]byte, 100)
		check(t, to.SetReadDeadline(time.Now().Add(10*time.Second)))
		n, peer, err := to.ReadFrom(b)
		check(t, err)
		one := time.Since(sent)
		_, err = to.WriteTo(b[:n], peer)
		check(t, err)
		check(t, from.SetReadDeadline(time.Now().Add(10*time.Second)))
		_, _, err = from.ReadFrom(b)
		check(t, err)
		if two := time.Since(sent); one < 10*time.Millisecond || two < 15*time.Millisecond {
			t.Errorf("arrived after %v, answered after %v; want at least 10 ms and 15 ms", one, two)
		}
	}
	c := l.counters(t)
	if c.Forward.PacketsOut < 20 || c.Reverse.PacketsOut < 20 {
		t.Errorf("counters: %+v", c)
	}
	t.Logf("error p50 %d ns", c.Forward.DepartureError.Quantile(0.5))
}

func TestTCP(t *testing.T) {
	l := newLab(t, 1500)
	l.join(t, l.cable(emul.Impairment{Rate: 100e6, Delay: 5 * time.Millisecond}, emul.Impairment{Delay: 5 * time.Millisecond}))
	check(t, l.session.Arm())
	from, to := l.tcp(t, false, "cubic")
	start := time.Now()
	go func() {
		buf := make([]byte, 1<<17)
		for time.Since(start) < 2*time.Second {
			if _, err := from.Write(buf); err != nil {
				return
			}
		}
		from.Close()
	}()
	n, err := io.Copy(io.Discard, to)
	check(t, err)
	t.Logf("%.1f Mbit/s %+v", float64(n)*8/time.Since(start).Seconds()/1e6, l.counters(t))
}
