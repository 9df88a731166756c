package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultReady = 30 * time.Second
	firstRetry   = 5 * time.Millisecond
	lastRetry    = time.Second
)

// version is a version of IP, as an index.
type version int

const (
	ipv4Version version = iota
	ipv6Version
)

func (v version) String() string { return [...]string{"IPv4", "IPv6"}[v] }

// echo is an ICMP echo request (RFC 792, RFC 4443) from one end of a segment to
// another, repeated until it is answered. The state of a device does not tell
// whether packets cross: a fresh veth can lose its first one, and the kernel
// makes an IPv6 address usable in the background, some time after it has taken
// the request to add it.
type echo struct {
	from, to end
	version  version
	next     time.Time
	retry    time.Duration
	sent     int
}

// prober sends the echoes of a testbed and collects the answers.
type prober struct {
	*builder
	fds     [][2]int // per node and version of IP, -1 where nothing is sent from
	epoll   int
	waiting map[uint16]*echo // by sequence number
}

// awaitAnswers returns when every address that does duplicate detection has
// passed it, and every link has carried a packet of every version of IP both
// ways.
func (b *builder) awaitAnswers(ctx context.Context, limit time.Duration) error {
	if limit == 0 {
		limit = defaultReady
	}
	var rtt time.Duration
	for _, l := range b.layout.Links {
		rtt = max(rtt, l.Forward.Delay+l.Reverse.Delay)
	}
	ctx, cancel := context.WithTimeout(ctx, limit+4*rtt)
	defer cancel()
	if err := b.awaitDAD(ctx); err != nil {
		return err
	}
	echoes := b.layout.echoes(ipv4Version)
	if b.v6 {
		echoes = append(echoes, b.layout.echoes(ipv6Version)...)
	}
	// Sequence numbers have 16 bits: probe the largest labs in parts.
	for len(echoes) > 0 {
		n := min(len(echoes), 1<<15)
		if err := b.probe(ctx, echoes[:n]); err != nil {
			return err
		}
		echoes = echoes[n:]
	}
	return nil
}

// echoes lists what has to be answered: across each link between hosts and
// routers, and around each segment with bridges, from every member to the
// next, which crosses each of its links that has members on both sides.
func (l *layout) echoes(v version) []*echo {
	var list []*echo
	add := func(from, to end) {
		if v == ipv4Version || l.addressAt(from).IPv6.IsValid() && l.addressAt(to).IPv6.IsValid() {
			list = append(list, &echo{from: from, to: to, version: v})
		}
	}
	for _, s := range l.segments {
		switch n := len(s.members); {
		case n < 2:
		case n == 2:
			add(s.members[0], s.members[1])
		default:
			for i, m := range s.members {
				add(m, s.members[(i+1)%n])
			}
		}
	}
	return list
}

func (b *builder) probe(ctx context.Context, echoes []*echo) (err error) {
	p := &prober{builder: b, fds: make([][2]int, len(b.hosts)), waiting: make(map[uint16]*echo, len(echoes))}
	for i := range p.fds {
		p.fds[i] = [2]int{-1, -1}
	}
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("probe links: %w", err)
	}
	defer p.close()
	for i, e := range echoes {
		if err := p.open(b.layout.nodeAt(e.from), e.version); err != nil {
			return fmt.Errorf("probe link %s: %w", b.layout.Links[e.from.link].Name, err)
		}
		p.waiting[uint16(i)] = e
	}
	return p.run(ctx)
}

func (p *prober) close() {
	unix.Close(p.epoll)
	for _, fds := range p.fds {
		for _, fd := range fds {
			if fd >= 0 {
				unix.Close(fd)
			}
		}
	}
}

// open opens a node's socket of a version: raw ICMP, echo replies only
// (icmp(7), ipv6(7)).
func (p *prober) open(node int, v version) error {
	if p.fds[node][v] >= 0 {
		return nil
	}
	family, protocol := unix.AF_INET, unix.IPPROTO_ICMP
	if v == ipv6Version {
		family, protocol = unix.AF_INET6, unix.IPPROTO_ICMPV6
	}
	var fd int
	err := p.hosts[node].Do(func() (err error) {
		fd, err = unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
		return err
	})
	if err != nil {
		return err
	}
	p.fds[node][v] = fd
	if err := repliesOnly(fd, v); err != nil {
		return err
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd), Pad: int32(v)}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &ev)
}

// repliesOnly blocks the other types of message; in both filters a set bit is a
// type not wanted.
func repliesOnly(fd int, v version) error {
	if v == ipv4Version {
		return unix.SetsockoptInt(fd, unix.SOL_RAW, unix.ICMP_FILTER, ^(1 << echoReply4))
	}
	var f unix.ICMPv6Filter
	for i := range f.Data {
		f.Data[i] = ^uint32(0)
	}
	f.Data[echoReply6/32] &^= 1 << (echoReply6 % 32)
	return unix.SetsockoptICMPv6Filter(fd, unix.IPPROTO_ICMPV6, unix.ICMPV6_FILTER, &f)
}

func (p *prober) run(ctx context.Context) error {
	var events [64]unix.EpollEvent
	var due time.Time // when something is to be sent
	for {
		now := time.Now()
		if !now.Before(due) {
			wait, err := p.sendDue(now)
			if err != nil {
				return err
			}
			due = now.Add(wait)
		}
		// Rounded up: a timeout of zero would spin.
		n, err := unix.EpollWait(p.epoll, events[:], int(due.Sub(now).Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("probe links: %w", err)
		}
		for _, ev := range events[:max(n, 0)] {
			p.receive(int(ev.Fd), version(ev.Pad))
		}
		if len(p.waiting) == 0 {
			return nil
		}
		if err := p.stopped(ctx); err != nil {
			return err
		}
	}
}

// stopped says why to give up, nil to go on.
func (p *prober) stopped(ctx context.Context) error {
	if p.session != nil {
		select {
		case <-p.session.Done():
			return fmt.Errorf("the backend ended while links were probed: %w", p.session.Err())
		default:
		}
	}
	if ctx.Err() == nil {
		return nil
	}
	var silent []string
	for _, e := range p.waiting {
		l := p.layout.Links[e.from.link]
		silent = append(silent, fmt.Sprintf("%s (%s to %s over %s, %d probes sent)", l.Name,
			p.layout.Nodes[p.layout.nodeAt(e.from)].Name, p.layout.Nodes[p.layout.nodeAt(e.to)].Name, e.version, e.sent))
		if len(silent) == 5 && len(p.waiting) > 5 {
			silent = append(silent, fmt.Sprintf("and %d more", len(p.waiting)-5))
			break
		}
	}
	return fmt.Errorf("waiting for links to answer: %w: no answer on %s", context.Cause(ctx), strings.Join(silent, ", "))
}

// sendDue sends what is due and returns the time until more is.
func (p *prober) sendDue(now time.Time) (time.Duration, error) {
	wait := lastRetry
	for seq, e := range p.waiting {
		if left := e.next.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		fd := p.fds[p.layout.nodeAt(e.from)][e.version]
		err := unix.Sendto(fd, echoRequest(seq, e.version), unix.MSG_DONTWAIT, p.layout.target(e))
		if err != nil && !isPassing(err) {
			return 0, fmt.Errorf("probe link %s: send: %w", p.layout.Links[e.from.link].Name, err)
		}
		e.sent++
		e.retry = min(max(2*e.retry, firstRetry), lastRetry)
		e.next = now.Add(e.retry)
		wait = min(wait, e.retry)
	}
	return wait, nil
}

// isPassing tells errors of sending that go away: the interface may not have its
// carrier or its address yet, or the queue be full.
func isPassing(err error) bool {
	return slices.ContainsFunc([]unix.Errno{
		unix.EAGAIN, unix.ENOBUFS, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN, unix.EADDRNOTAVAIL,
	}, func(e unix.Errno) bool { return errors.Is(err, e) })
}

// target is where an echo is sent.
func (l *layout) target(e *echo) unix.Sockaddr {
	a := l.addressAt(e.to)
	if e.version == ipv6Version {
		return &unix.SockaddrInet6{Addr: a.IPv6.Addr().As16()}
	}
	return &unix.SockaddrInet4{Addr: a.IPv4.Addr().As4()}
}

// receive takes the answers off a socket.
func (p *prober) receive(fd int, v version) {
	var buf [256]byte
	for {
		n, _, err := unix.Recvfrom(fd, buf[:], unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		header := 0
		if v == ipv4Version { // which is delivered with the IP header
			header = int(buf[0]&15) * 4
		}
		if n < header+8 || binary.BigEndian.Uint16(buf[header+4:]) != echoIdent {
			continue
		}
		delete(p.waiting, binary.BigEndian.Uint16(buf[header+6:]))
	}
}

const (
	echoIdent = 0x574c // "WL"

	// Types of message, RFC 792 and RFC 4443.
	echoRequest4, echoReply4 = 8, 0
	echoRequest6, echoReply6 = 128, 129
)

func echoRequest(seq uint16, v version) []byte {
	b := make([]byte, 16)
	b[0] = echoRequest4
	if v == ipv6Version {
		b[0] = echoRequest6
	}
	binary.BigEndian.PutUint16(b[4:], echoIdent)
	binary.BigEndian.PutUint16(b[6:], seq)
	if v == ipv4Version { // that of ICMPv6 is up to the kernel
		binary.BigEndian.PutUint16(b[2:], ^fold(sum(b)))
	}
	return b
}
