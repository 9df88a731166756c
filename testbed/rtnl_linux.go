package testbed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// batch sends many route-netlink requests with few system calls. The kernel
// works through them in order while it takes them in; only failures and the
// last request of a chunk are answered. Building a node is one batch, which is
// what makes a thousand of them cheap.
//
// A socket belongs to the namespace it was opened in, so that the batch may be
// used from any thread, by one goroutine at a time.
type batch struct {
	fd    int
	buf   []byte
	seq   uint32   // of the next request
	first uint32   // sequence number of the first request in buf
	what  []string // per request in buf, for errors
	last  int      // offset in buf of the last request
}

// batchChunk is well below the default send buffer (net.core.wmem_default).
const batchChunk = 64 << 10

// openBatch opens the socket in the namespace of the calling thread.
func openBatch() (*batch, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open netlink socket: %w", err)
	}
	// Best effort: older kernels answer with less text or with more.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1)
	return &batch{fd: fd, seq: 1, first: 1}, nil
}

// add queues a request; what says in an error what it was for.
func (b *batch) add(what string, req *nl.NetlinkRequest) error {
	req.Seq = b.seq
	b.seq++
	b.last = len(b.buf)
	b.buf = append(b.buf, req.Serialize()...)
	for len(b.buf)%unix.NLMSG_ALIGNTO != 0 {
		b.buf = append(b.buf, 0)
	}
	b.what = append(b.what, what)
	if len(b.buf) >= batchChunk {
		return b.flush()
	}
	return nil
}

// flush sends what is queued and returns the first failure among it. Requests
// behind a failed one are carried out nevertheless.
func (b *batch) flush() error {
	if len(b.buf) == 0 {
		return nil
	}
	flags := b.buf[b.last+6:]
	binary.NativeEndian.PutUint16(flags, binary.NativeEndian.Uint16(flags)|unix.NLM_F_ACK)
	final := b.seq - 1
	defer func() {
		b.buf, b.what, b.first = b.buf[:0], b.what[:0], b.seq
	}()
	if err := unix.Sendto(b.fd, b.buf, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("%s: send netlink batch: %w", b.what[0], err)
	}
	var failed error
	var answer [8 << 10]byte
	for {
		n, _, err := unix.Recvfrom(b.fd, answer[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.ENOBUFS) && failed != nil {
			return failed // more failures than fit; the first one matters
		}
		if err != nil {
			return errors.Join(failed, fmt.Errorf("%s: read netlink answer: %w", b.what[0], err))
		}
		for msg := answer[:n]; len(msg) >= unix.SizeofNlMsghdr; {
			h := (*unix.NlMsghdr)(unsafe.Pointer(&msg[0]))
			if h.Len < unix.SizeofNlMsghdr || int(h.Len) > len(msg) {
				break
			}
			if err := b.answer(h, msg[:h.Len]); err != nil && failed == nil {
				failed = err
			}
			if h.Type == unix.NLMSG_ERROR && h.Seq == final {
				return failed
			}
			msg = msg[min(len(msg), int(h.Len+3)&^3):]
		}
	}
}

// answer turns one message of the kernel into an error, nil if it confirms.
func (b *batch) answer(h *unix.NlMsghdr, msg []byte) error {
	if h.Type != unix.NLMSG_ERROR || len(msg) < unix.SizeofNlMsghdr+4 {
		return nil
	}
	code := int32(binary.NativeEndian.Uint32(msg[unix.SizeofNlMsghdr:]))
	if code == 0 {
		return nil
	}
	what := "netlink request"
	if i := int(h.Seq - b.first); i >= 0 && i < len(b.what) {
		what = b.what[i]
	}
	err := error(unix.Errno(-code))
	if text := extendedText(h, msg); text != "" {
		err = fmt.Errorf("%w (%s)", err, text)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// extendedText is the kernel's own explanation of an error, "" without one
// (NLMSGERR_ATTR_MSG, Documentation/userspace-api/netlink/intro.rst).
func extendedText(h *unix.NlMsghdr, msg []byte) string {
	const acked = unix.SizeofNlMsghdr + 4 // the failed request's header follows the code
	if h.Flags&unix.NLM_F_ACK_TLVS == 0 || len(msg) < acked+unix.SizeofNlMsghdr {
		return ""
	}
	skip := acked + unix.SizeofNlMsghdr
	if h.Flags&unix.NLM_F_CAPPED == 0 {
		failed := (*unix.NlMsghdr)(unsafe.Pointer(&msg[acked]))
		skip = acked + int(failed.Len+3)&^3
	}
	if skip >= len(msg) {
		return ""
	}
	attrs, err := nl.ParseRouteAttr(msg[skip:])
	if err != nil {
		return ""
	}
	for _, a := range attrs {
		if a.Attr.Type == unix.NLMSGERR_ATTR_MSG {
			return strings.TrimRight(string(a.Value), "\x00")
		}
	}
	return ""
}

func (b *batch) close() error {
	if b.fd < 0 {
		return nil
	}
	err := unix.Close(b.fd)
	b.fd = -1
	return err
}
