package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/workloads"
)

// receiveTimeout is how often a waiting reader looks whether it shall end.
const receiveTimeout = 20 * time.Millisecond

// socket sends echo requests to one target and receives its replies.
type socket struct {
	fd   int
	echo echo
	raw  bool   // a raw socket, which for IPv4 delivers the IP header
	how  string // "raw" or "ping"
	buf  []byte
	oob  []byte
}

// openSocket opens a raw ICMP socket, or where that is not permitted a ping
// socket.
func openSocket(target netip.Addr, e echo) (*socket, error) {
	domain, proto := unix.AF_INET, unix.IPPROTO_ICMP
	if e.version == 6 {
		domain, proto = unix.AF_INET6, unix.IPPROTO_ICMPV6
	}
	s := &socket{echo: e, raw: true, how: "raw", buf: make([]byte, 1<<16), oob: make([]byte, 256)}
	var err error
	s.fd, err = unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		s.raw, s.how, s.echo.kernelID = false, "ping", true
		s.fd, err = unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, proto)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: open an ICMP socket: %w: run as root, or let your group use ping sockets with sysctl net.ipv4.ping_group_range",
			workloads.ErrUnsupported, err)
	}
	if err := s.configure(target); err != nil {
		return nil, errors.Join(fmt.Errorf("set up the ICMP socket: %w", err), unix.Close(s.fd))
	}
	return s, nil
}

func (s *socket) configure(target netip.Addr) error {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return err
	}
	timeout := unix.NsecToTimeval(int64(receiveTimeout))
	if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		return err
	}
	if s.raw {
		if err := s.filter(); err != nil {
			return err
		}
	}
	// Only the target's packets come in, and send needs no address.
	if s.echo.version == 6 {
		return unix.Connect(s.fd, &unix.SockaddrInet6{Addr: target.As16()})
	}
	return unix.Connect(s.fd, &unix.SockaddrInet4{Addr: target.Unmap().As4()})
}

// filter lets only echo replies in.
func (s *socket) filter() error {
	if s.echo.version == 4 {
		// struct icmp_filter: a set bit blocks the type.
		return unix.SetsockoptInt(s.fd, unix.SOL_RAW, unix.ICMP_FILTER, ^(1 << echoReply4))
	}
	var f unix.ICMPv6Filter
	for i := range f.Data {
		f.Data[i] = ^uint32(0)
	}
	f.Data[echoReply6/32] &^= 1 << (echoReply6 % 32)
	return unix.SetsockoptICMPv6Filter(s.fd, unix.IPPROTO_ICMPV6, unix.ICMPV6_FILTER, &f)
}

func (s *socket) send(packet []byte) error {
	for {
		_, err := unix.Write(s.fd, packet)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// receive waits a little for a reply of ours and returns its number and the
// kernel's receive stamp as a CLOCK_MONOTONIC time; ok is false without one.
func (s *socket) receive(now func() int64) (seq uint64, at int64, ok bool, err error) {
	n, oobn, _, _, err := unix.Recvmsg(s.fd, s.buf, s.oob, 0)
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return 0, 0, false, nil
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.ENETUNREACH):
		return 0, 0, false, nil // an ICMP error of the path: the request is lost
	case err != nil:
		return 0, 0, false, err
	}
	wall := realtime()
	at = now()
	packet := s.buf[:n]
	if s.raw && s.echo.version == 4 {
		packet = stripIPv4(packet)
	}
	if seq, ok = s.echo.parse(packet); !ok {
		return 0, 0, false, nil
	}
	return seq, at - stampAge(s.oob[:oobn], wall), true, nil
}

func realtime() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME, &ts) != nil {
		return 0
	}
	return ts.Nano()
}

// stampAge returns how long before wall the kernel stamped the packet, in ns.
// Both are of CLOCK_REALTIME, which may be set or slewed: only their distance
// is used.
func stampAge(oob []byte, wall int64) int64 {
	for len(oob) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return 0
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SO_TIMESTAMPNS && len(data) >= 16 {
			stamp := int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
			if d := wall - stamp; d > 0 && d < int64(time.Second) {
				return d
			}
			return 0
		}
		oob = rest
	}
	return 0
}

func (s *socket) close() { _ = unix.Close(s.fd) } // it holds nothing unsent
