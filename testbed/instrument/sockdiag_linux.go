package instrument

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// sockDiag asks the kernel for the TCP sockets of one node (NETLINK_SOCK_DIAG,
// sock_diag(7)).
type sockDiag struct {
	fd  int
	buf []byte
	req []byte // of a dump
	ask []byte // of lookups
	seq uint32
}

var _ tcpDump = (*sockDiag)(nil)

// tcpDiagStates are the states of flows that have been established and are not
// yet only waiting out their time (bit 1 << TCP_ESTABLISHED and so on).
const tcpDiagStates = 1<<1 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11

const (
	// tcpDiagGetSock is TCPDIAG_GETSOCK, the older request. Unlike
	// SOCK_DIAG_BY_FAMILY it walks the kernel's socket table once for both
	// address families, and that walk is most of what a dump costs.
	tcpDiagGetSock = 18
	tcpDiagReqLen  = 4 + diagIDLen + 8
)

// openSockDiag opens the socket inside a node's namespace.
func openSockDiag(ns Namespace) (*sockDiag, error) {
	d := &sockDiag{buf: make([]byte, 256<<10)}
	err := ns.Do(func() error {
		var err error
		d.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open socket diagnostics of %s: %w", ns.Path(), err)
	}
	// A kernel that does not answer must not hold the run up.
	if err := unix.SetsockoptTimeval(d.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 5}); err != nil {
		return nil, errors.Join(fmt.Errorf("open socket diagnostics of %s: %w", ns.Path(), err), d.close())
	}
	d.req = make([]byte, unix.SizeofNlMsghdr+tcpDiagReqLen)
	ne := binary.NativeEndian
	ne.PutUint32(d.req[0:], uint32(len(d.req)))
	ne.PutUint16(d.req[4:], tcpDiagGetSock)
	ne.PutUint16(d.req[6:], unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	body := d.req[unix.SizeofNlMsghdr:]
	body[0] = unix.AF_INET        // a dump answers for both families all the same
	body[3] = 1 << (diagInfo - 1) // the extensions wanted
	ne.PutUint32(body[4+diagIDLen:], tcpDiagStates)
	return d, nil
}

func (d *sockDiag) close() error { return unix.Close(d.fd) }

// dump calls fn for every flow of the node.
func (d *sockDiag) dump(fn func(*tcpState)) error {
	d.seq++
	binary.NativeEndian.PutUint32(d.req[8:], d.seq)
	if err := unix.Sendto(d.fd, d.req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("ask for TCP sockets: %w", err)
	}
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read TCP sockets: %w", err)
		}
		done, err := d.messages(d.buf[:n], fn)
		if done || err != nil {
			return err
		}
	}
}

// lookup calls fn for each of the named flows that still exists, at most
// maxLookups of them. Unlike a dump it does not walk the kernel's table.
func (d *sockDiag) lookup(keys []tcpKey, fn func(*tcpState)) error {
	d.seq++
	d.ask = d.ask[:0]
	for _, k := range keys {
		d.ask = appendLookup(d.ask, d.seq, k)
	}
	if err := unix.Sendto(d.fd, d.ask, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("ask for TCP flows: %w", err)
	}
	// One answer each, in order; an error answers for a flow that has ended.
	for answered := 0; answered < len(keys); {
		n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read TCP flows: %w", err)
		}
		if n < unix.SizeofNlMsghdr || binary.NativeEndian.Uint32(d.buf[8:]) != d.seq {
			continue // a leftover of an earlier request
		}
		answered++
		if _, err := d.messages(d.buf[:n], fn); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// appendLookup appends the request for one flow (struct inet_diag_req_v2).
func appendLookup(b []byte, seq uint32, k tcpKey) []byte {
	const length = unix.SizeofNlMsghdr + 8 + diagIDLen
	ne := binary.NativeEndian
	b = ne.AppendUint32(b, length)
	b = ne.AppendUint16(b, unix.SOCK_DIAG_BY_FAMILY)
	b = ne.AppendUint16(b, unix.NLM_F_REQUEST)
	b = ne.AppendUint32(b, seq)
	b = ne.AppendUint32(b, 0)
	family := byte(unix.AF_INET6)
	if k.local.Addr().Is4() {
		family = unix.AF_INET
	}
	b = append(b, family, unix.IPPROTO_TCP, 1<<(diagInfo-1), 0)
	b = ne.AppendUint32(b, ^uint32(0)) // any state
	b = binary.BigEndian.AppendUint16(b, k.local.Port())
	b = binary.BigEndian.AppendUint16(b, k.remote.Port())
	for _, a := range []netip.Addr{k.local.Addr(), k.remote.Addr()} {
		var raw [16]byte
		copy(raw[:], a.AsSlice())
		b = append(b, raw[:]...)
	}
	b = ne.AppendUint32(b, 0) // any interface
	return ne.AppendUint64(b, k.cookie)
}

// messages takes one datagram apart; done says that the dump is over.
func (d *sockDiag) messages(b []byte, fn func(*tcpState)) (done bool, err error) {
	ne := binary.NativeEndian
	for len(b) >= unix.SizeofNlMsghdr {
		size, kind := int(ne.Uint32(b)), ne.Uint16(b[4:])
		if size < unix.SizeofNlMsghdr || size > len(b) {
			return true, errors.New("read TCP sockets: a message of the kernel makes no sense")
		}
		body := b[unix.SizeofNlMsghdr:size]
		mine := ne.Uint32(b[8:]) == d.seq // else a leftover of an earlier dump
		switch {
		case !mine:
		case kind == unix.NLMSG_DONE:
			return true, nil
		case kind == unix.NLMSG_ERROR:
			if len(body) >= 4 {
				if errno := -int32(ne.Uint32(body)); errno != 0 {
					return true, fmt.Errorf("read TCP sockets: %w", unix.Errno(errno))
				}
			}
			return true, nil
		default:
			if s, ok := parseDiag(body); ok {
				fn(&s)
			}
		}
		b = b[min(size+(-size&3), len(b)):]
	}
	return false, nil
}
