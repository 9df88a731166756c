package netns

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

func needRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root to make network namespaces")
	}
}

func fresh(tb testing.TB) *NS {
	tb.Helper()
	needRoot(tb)
	n, err := New(nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { n.Close() })
	return n
}

func inode(tb testing.TB) uint64 {
	tb.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n, err := current()
	if err != nil {
		tb.Fatal(err)
	}
	defer n.Close()
	return n.ID().Inode
}

func TestNamespacesAreApart(t *testing.T) {
	t.Parallel()
	a, b := fresh(t), fresh(t)
	if a.ID() == b.ID() || a.ID().Inode == inode(t) {
		t.Fatalf("ids %v, %v and %d", a.ID(), b.ID(), inode(t))
	}
	h, err := netlink.NewHandleAt(a.Handle())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil || len(links) != 1 || links[0].Attrs().Name != "lo" {
		t.Errorf("a fresh namespace has %v, %v, want lo", links, err)
	}
}

func TestDo(t *testing.T) {
	t.Parallel()
	n := fresh(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			var in *NS
			err := n.Do(func() (err error) {
				runtime.Gosched()
				in, err = current() // the thread is locked
				return err
			})
			if err != nil {
				t.Error(err)
				return
			}
			defer in.Close()
			if in.ID() != n.ID() {
				t.Errorf("inside is %v, want %v", in.ID(), n.ID())
			}
		})
	}
	wg.Wait()
	want := errors.New("its error")
	if err := n.Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("error %v, want %v", err, want)
	}
	// The function may leave its goroutine, as a failing test does.
	if err := n.Do(func() error { runtime.Goexit(); return nil }); err == nil {
		t.Error("no error from a function that left")
	}
	if err := n.Do(func() error { return nil }); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err := n.Do(func() error { return nil }); err == nil {
		t.Error("a closed namespace was entered")
	}
}

func TestNewUndoes(t *testing.T) {
	t.Parallel()
	needRoot(t)
	want := errors.New("its error")
	if n, err := New(func(*NS) error { return want }); !errors.Is(err, want) || n != nil {
		t.Errorf("%v, %v, want nil and %v", n, err, want)
	}
}

func TestLinkAndOpen(t *testing.T) {
	t.Parallel()
	n := fresh(t)
	path := filepath.Join(t.TempDir(), "name")
	if err := n.Link(path); err != nil {
		t.Fatal(err)
	}
	o, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.ID() != n.ID() {
		t.Errorf("opened %v, want %v", o.ID(), n.ID())
	}
	for _, path := range []string{"/proc/self/stat/x", os.DevNull} {
		if o, err := Open(path); err == nil {
			o.Close()
			t.Errorf("%s was opened as a namespace", path)
		}
	}
}

// The kernel removes the devices of a namespace with its last user: the other
// end of a pair goes with them.
func TestCloseRemovesDevices(t *testing.T) {
	t.Parallel()
	a, b := fresh(t), fresh(t)
	h, err := netlink.NewHandleAt(a.Handle())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "x"}, PeerName: "y", PeerNamespace: netlink.NsFd(b.FD())}
	if err := h.LinkAdd(v); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		if _, err := h.LinkByName("x"); errors.As(err, new(netlink.LinkNotFoundError)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the pair is still there after 30 s")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestStarter(t *testing.T) {
	t.Parallel()
	n := fresh(t)
	s := NewStarter()
	cmd := exec.Command("/bin/sh", "-c", "readlink /proc/self/ns/net")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := s.Start(n, cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(n.FD(), &st); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(out.String()); !strings.Contains(got, strconv.FormatUint(st.Ino, 10)) {
		t.Errorf("the process is in %s, want inode %d", got, st.Ino)
	}
	// A process outlives other goroutines' threads, and dies with the starter.
	idle := exec.Command("/bin/sleep", "1000")
	if err := s.Start(n, idle); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		done := make(chan struct{})
		go func() { runtime.LockOSThread(); close(done) }()
		<-done
	}
	if err := idle.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("the process is gone: %v", err)
	}
	s.Close()
	s.Close()
	if err := idle.Wait(); err == nil {
		t.Error("the process ended by itself")
	}
	if err := s.Start(n, exec.Command("/bin/true")); err == nil {
		t.Error("a closed starter started a process")
	}
	if err := NewStarter().Start(n, exec.Command("/no/such/program")); err == nil {
		t.Error("a program that is not was started")
	}
}

// Sockets stay where they were opened.
func TestSocketsStay(t *testing.T) {
	t.Parallel()
	n := fresh(t)
	var l net.Listener
	if err := n.Do(func() (err error) {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetUp(lo); err != nil {
			return err
		}
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c, err := net.DialTimeout("tcp", l.Addr().String(), time.Second); err == nil {
		c.Close()
		t.Error("the namespace's listener is reached from outside")
	}
	if err := n.Do(func() error {
		c, err := net.DialTimeout("tcp", l.Addr().String(), 30*time.Second)
		if err == nil {
			c.Close()
		}
		return err
	}); err != nil {
		t.Errorf("from inside: %v", err)
	}
}

func BenchmarkNew(b *testing.B) {
	needRoot(b)
	for b.Loop() {
		n, err := New(nil)
		if err != nil {
			b.Fatal(err)
		}
		n.Close()
	}
}

func BenchmarkDo(b *testing.B) {
	n := fresh(b)
	for b.Loop() {
		if err := n.Do(func() error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// A starter's thread is never the process's first, which would outlive it.
func TestOffMainThread(t *testing.T) {
	for range 200 {
		first := make(chan bool)
		go offMainThread(func() { first <- unix.Gettid() == unix.Getpid() })
		if <-first {
			t.Fatal("on the first thread")
		}
	}
}
