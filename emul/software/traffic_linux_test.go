package software_test

import (
	"encoding/binary"
	"net"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bulk sends over TCP from a to b for a while and returns the bytes per second
// that b received after the first fifth.
func bulk(tb testing.TB, a, b node, congestion string, d time.Duration) float64 {
	tb.Helper()
	from, to := connect(tb, a, b, false, congestion)
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 256<<10)
		for {
			if _, err := from.Write(buf); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 512<<10)
	var n int64
	start := time.Now()
	counting := false
	for {
		k, err := to.Read(buf)
		check(tb, err)
		n += int64(k)
		switch e := time.Since(start); {
		case !counting && e > d/5:
			counting, n, start = true, 0, time.Now()
		case counting && e > d*4/5:
			check(tb, from.SetDeadline(time.Now()))
			<-done
			_ = from.Close()
			_ = to.Close()
			return float64(n) / e.Seconds()
		}
	}
}

type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   uint32
}

// flood sends UDP datagrams of size bytes from a to b as fast as it can, and
// returns the frames per second that b's device received. Nobody reads them:
// only the path counts.
func flood(tb testing.TB, a, b node, size int, d time.Duration) float64 {
	tb.Helper()
	from, to := a.udp(tb, false), b.udp(tb, false)
	defer from.Close()
	defer to.Close()
	ffd, tfd := file(tb, from), file(tb, to)
	check(tb, unix.Connect(ffd, &unix.SockaddrInet4{Port: addrOf(to).Port, Addr: b.v4.As4()}))
	check(tb, unix.SetsockoptInt(tfd, unix.SOL_SOCKET, unix.SO_RCVBUF, 2048))
	stop := make(chan struct{})
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		m := newBatch(size)
		for {
			select {
			case <-stop:
				return
			default:
				unix.Syscall6(unix.SYS_SENDMMSG, uintptr(ffd), uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), 0, 0, 0)
			}
		}
	}()
	time.Sleep(d / 5)
	start, n := time.Now(), b.received(tb)
	time.Sleep(d * 3 / 5)
	rate := float64(b.received(tb)-n) / time.Since(start).Seconds()
	close(stop)
	<-sent
	return rate
}

// received is the number of frames that the node's device has received.
func (n node) received(tb testing.TB) uint64 {
	tb.Helper()
	l, err := n.netlink.LinkByName("eth0")
	check(tb, err)
	return l.Attrs().Statistics.RxPackets
}

func newBatch(size int) []mmsghdr {
	m := make([]mmsghdr, 64)
	buf := make([]byte, size*len(m))
	for i := range m {
		v := &unix.Iovec{Base: &buf[i*size], Len: uint64(size)}
		m[i].hdr.Iov, m[i].hdr.Iovlen = v, 1
	}
	return m
}

// file returns a blocking duplicate of the connection's descriptor.
func file(tb testing.TB, c *net.UDPConn) int {
	tb.Helper()
	f, err := c.File()
	check(tb, err)
	tb.Cleanup(func() { _ = f.Close() })
	return int(f.Fd())
}

// probe sends UDP datagrams from a to b, one every interval, and returns
// kernel receive stamp minus send time of each that arrived, sorted.
func probe(tb testing.TB, a, b node, n int, interval time.Duration) []time.Duration {
	tb.Helper()
	from, to := a.udp(tb, false), b.udp(tb, false)
	defer from.Close()
	defer to.Close()
	out := make(chan []time.Duration)
	go func() {
		var got []time.Duration
		msg, oob := make([]byte, 64), make([]byte, 128)
		for len(got) < n {
			_ = to.SetReadDeadline(time.Now().Add(2 * time.Second))
			k, ob, _, _, err := to.ReadMsgUDP(msg, oob)
			if err != nil {
				break
			}
			cm, err := unix.ParseSocketControlMessage(oob[:ob])
			if err != nil || len(cm) == 0 || k < 8 {
				continue
			}
			stamp := int64(binary.NativeEndian.Uint64(cm[0].Data))*1e9 + int64(binary.NativeEndian.Uint64(cm[0].Data[8:]))
			got = append(got, time.Duration(stamp-int64(binary.NativeEndian.Uint64(msg))))
		}
		out <- got
	}()
	msg := make([]byte, 64)
	dst := addrOf(to).AddrPort()
	next := time.Now()
	for range n {
		// An irregular interval does not fall into step with anything.
		next = next.Add(interval*3/4 + time.Duration(next.UnixNano()%int64(interval/2)))
		time.Sleep(time.Until(next))
		binary.NativeEndian.PutUint64(msg, uint64(time.Now().UnixNano()))
		if _, err := from.WriteToUDPAddrPort(msg, dst); err != nil {
			tb.Error(err)
		}
	}
	got := <-out
	slices.Sort(got)
	return got
}

// quantile of sorted values, nearest rank.
func quantile[T any](sorted []T, q float64) T {
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// maxRate paces the connection to bytes per second.
func maxRate(tb testing.TB, c *net.TCPConn, rate uint64) {
	tb.Helper()
	raw, err := c.SyscallConn()
	check(tb, err)
	check(tb, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, rate)
	}))
	check(tb, err)
}
