package testbed

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"wirelab/emul"
)

// A connection whose last words nobody acknowledges keeps its namespace alive
// for minutes. Close does not wait for that.
func TestCloseDoesNotWaitForOrphans(t *testing.T) {
	needRoot(t)
	topo := impaired(chainOf(2), emul.Impairment{Delay: 100 * time.Millisecond})
	tb, err := Up(t.Context(), topo, testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	addr := tb.Host("n1").Addresses()[0].IPv4.Addr()
	var l net.Listener
	if err := tb.Host("n1").Do(func() (err error) {
		l, err = net.Listen("tcp", netip.AddrPortFrom(addr, 0).String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var c net.Conn
	if err := tb.Host("n0").Do(func() (err error) {
		c, err = net.Dial("tcp", l.Addr().String())
		return err
	}); err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	// Both ends close with a FIN that never gets an answer.
	go func() { _, _ = io.Copy(c, bytes.NewReader(make([]byte, 4<<20))) }()
	time.Sleep(50 * time.Millisecond)
	if err := tb.Session().Close(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []io.Closer{c, s, l} {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- tb.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("Close still waits after 30 s")
		<-done
	}
}
