package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirelab/workloads"
)

// setSender sets a flow's options before it connects.
func (w *Workload) setSender(fd int) error {
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, w.Congestion); err != nil {
		return congestionError(w.Congestion, err)
	}
	if w.Pacing > 0 {
		var rate [8]byte
		binary.NativeEndian.PutUint64(rate[:], uint64(w.Pacing/8))
		if err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, string(rate[:])); err != nil {
			return fmt.Errorf("set pacing %v: %w", w.Pacing, err)
		}
	}
	if w.SendBuffer > 0 {
		if err := setBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, int(w.SendBuffer)); err != nil {
			return fmt.Errorf("set send_buffer %v: %w", w.SendBuffer, err)
		}
	}
	return w.setMSS(fd)
}

// trySocket sets a sender's options on a socket that is thrown away.
func trySocket(w *Workload) error {
	domain := unix.AF_INET
	if w.version() == 6 {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open a TCP socket: %w", err)
	}
	defer unix.Close(fd)
	return w.setSender(fd)
}

// setReceiver sets the listener's options, which its connections inherit.
func (w *Workload) setReceiver(fd int) error {
	if w.ReceiveBuffer > 0 {
		if err := setBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, int(w.ReceiveBuffer)); err != nil {
			return fmt.Errorf("set receive_buffer %v: %w", w.ReceiveBuffer, err)
		}
	}
	return w.setMSS(fd)
}

func (w *Workload) setMSS(fd int) error {
	if w.MSS == 0 {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, w.MSS); err != nil {
		return fmt.Errorf("set mss %d: %w", w.MSS, err)
	}
	return nil
}

// setBuffer passes the host's limit where it may, and else reports when the
// host's limit cut the size.
func setBuffer(fd, force, plain, size int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) == nil {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, size); err != nil {
		return err
	}
	// The kernel doubles the size for its own bookkeeping.
	got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
	if err == nil && got < 2*size {
		return fmt.Errorf("the host allows only %d bytes: run as root or raise net.core.wmem_max and rmem_max", got/2)
	}
	return err
}

func congestionError(name string, err error) error {
	available := "unknown"
	if text, readErr := os.ReadFile(availablePath); readErr == nil {
		available = strings.Join(strings.Fields(string(text)), ", ")
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%w: congestion control %q: this kernel has %s", workloads.ErrUnsupported, name, available)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: congestion control %q needs root: this kernel has %s, not all of them for everyone", workloads.ErrUnsupported, name, available)
	}
	return fmt.Errorf("set congestion control %q (this kernel has %s): %w", name, available, err)
}

// congestionOf reads back which congestion control a socket uses.
func congestionOf(fd int) string {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	if err != nil {
		return ""
	}
	return strings.TrimRight(name, "\x00")
}

// infoSize is more than any kernel returns today.
const infoSize = 512

// readInfo reads TCP_INFO of a socket into buf.
func readInfo(fd uintptr, buf *[infoSize]byte) (info, error) {
	length := uint32(len(buf))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(buf)), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return info{}, errno
	}
	return parseInfo(buf[:length]), nil
}

// receive takes what a socket has received: into buf, at most limit bytes, or
// with a nil buf throws it away in the kernel, which MSG_TRUNC does on a TCP
// socket. It returns 0 at the end of the stream, and EAGAIN when there is
// nothing yet.
func receive(fd uintptr, buf []byte, limit int64) (int64, error) {
	var at unsafe.Pointer
	flags := uintptr(unix.MSG_TRUNC)
	size := min(limit, receiveSize)
	if buf != nil {
		at, flags, size = unsafe.Pointer(unsafe.SliceData(buf)), 0, min(limit, int64(len(buf)))
	}
	for {
		n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, fd, uintptr(at), uintptr(size), flags, 0, 0)
		switch errno {
		case 0:
			return int64(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// again tells whether a socket had nothing to give.
func again(err error) bool { return errors.Is(err, syscall.EAGAIN) }
