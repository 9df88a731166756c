package testbed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	defaultReady = 30 * time.Second
	firstRetry   = 5 * time.Millisecond
	lastRetry    = time.Second
)

// echo is an ICMP echo request (RFC 792) from one end of a segment to another,
// repeated until it is answered. The state of a device does not tell whether
// packets cross: a fresh veth can lose its first one.
type echo struct {
	from, to end
	next     time.Time
	retry    time.Duration
	sent     int
}

// prober sends the echoes of a testbed and collects the answers.
type prober struct {
	*builder
	fds     []int // per node, -1 where nothing is sent from
	epoll   int
	waiting map[uint16]*echo // by sequence number
}

// awaitAnswers returns when every link has carried a packet both ways, and
// every address that does duplicate detection has passed it.
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
	echoes := b.layout.echoes()
	// Sequence numbers have 16 bits: probe the largest labs in parts.
	for len(echoes) > 0 {
		n := min(len(echoes), 1<<15)
		if err := b.probe(ctx, echoes[:n]); err != nil {
			return err
		}
		echoes = echoes[n:]
	}
	return b.awaitDAD(ctx)
}

// echoes lists what has to be answered: across each link between hosts and
// routers, and around each segment with bridges, from every member to the
// next, which crosses each of its links that has members on both sides.
func (l *layout) echoes() []*echo {
	var list []*echo
	for _, s := range l.segments {
		switch n := len(s.members); {
		case n < 2:
		case n == 2:
			list = append(list, &echo{from: s.members[0], to: s.members[1]})
		default:
			for i, m := range s.members {
				list = append(list, &echo{from: m, to: s.members[(i+1)%n]})
			}
		}
	}
	return list
}

func (b *builder) probe(ctx context.Context, echoes []*echo) (err error) {
	p := &prober{builder: b, fds: make([]int, len(b.hosts)), waiting: make(map[uint16]*echo, len(echoes))}
	for i := range p.fds {
		p.fds[i] = -1
	}
	if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("probe links: %w", err)
	}
	defer p.close()
	for i, e := range echoes {
		if err := p.open(b.layout.nodeAt(e.from)); err != nil {
			return fmt.Errorf("probe link %s: %w", b.layout.Links[e.from.link].Name, err)
		}
		p.waiting[uint16(i)] = e
	}
	return p.run(ctx)
}

func (p *prober) close() {
	unix.Close(p.epoll)
	for _, fd := range p.fds {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// open opens a node's socket: raw ICMP, echo replies only (icmp(7)).
func (p *prober) open(node int) error {
	if p.fds[node] >= 0 {
		return nil
	}
	var fd int
	err := p.hosts[node].Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_ICMP)
		return err
	})
	if err != nil {
		return err
	}
	p.fds[node] = fd
	const icmpFilter = 1 // ICMP_FILTER, linux/icmp.h; a set bit is a type not wanted
	if err := unix.SetsockoptInt(fd, unix.SOL_RAW, icmpFilter, ^1); err != nil {
		return err
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
	return unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &ev)
}

func (p *prober) run(ctx context.Context) error {
	var events [64]unix.EpollEvent
	for {
		wait, err := p.sendDue(time.Now())
		if err != nil {
			return err
		}
		// Rounded up: a timeout of zero would spin.
		n, err := unix.EpollWait(p.epoll, events[:], int(wait.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("probe links: %w", err)
		}
		for _, ev := range events[:max(n, 0)] {
			p.receive(int(ev.Fd))
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
		silent = append(silent, fmt.Sprintf("%s (%s to %s, %d probes sent)", l.Name,
			p.layout.Nodes[p.layout.nodeAt(e.from)].Name, p.layout.Nodes[p.layout.nodeAt(e.to)].Name, e.sent))
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
		fd, to := p.fds[p.layout.nodeAt(e.from)], p.layout.addressAt(e.to).IPv4.Addr().As4()
		err := unix.Sendto(fd, echoRequest(seq), unix.MSG_DONTWAIT, &unix.SockaddrInet4{Addr: to})
		// The interface may not have its carrier yet, or the queue be full.
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ENOBUFS) &&
			!errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EHOSTUNREACH) && !errors.Is(err, unix.ENETDOWN) {
			return 0, fmt.Errorf("probe link %s: send: %w", p.layout.Links[e.from.link].Name, err)
		}
		e.sent++
		e.retry = min(max(2*e.retry, firstRetry), lastRetry)
		e.next = now.Add(e.retry)
		wait = min(wait, e.retry)
	}
	return wait, nil
}

// receive takes the answers off a socket.
func (p *prober) receive(fd int) {
	var buf [256]byte
	for {
		n, _, err := unix.Recvfrom(fd, buf[:], unix.MSG_DONTWAIT)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		header := int(buf[0]&15) * 4
		if n < header+8 || binary.BigEndian.Uint16(buf[header+4:]) != echoIdent {
			continue
		}
		delete(p.waiting, binary.BigEndian.Uint16(buf[header+6:]))
	}
}

const echoIdent = 0x574c // "WL"

func echoRequest(seq uint16) []byte {
	b := make([]byte, 16)
	b[0] = 8 // echo request
	binary.BigEndian.PutUint16(b[4:], echoIdent)
	binary.BigEndian.PutUint16(b[6:], seq)
	binary.BigEndian.PutUint16(b[2:], ^fold(sum(b)))
	return b
}

const ifaFDADFailed = 0x08 // IFA_F_DADFAILED

// awaitDAD waits until no address of a link with duplicate address detection
// is tentative.
func (b *builder) awaitDAD(ctx context.Context) error {
	if !b.v6 {
		return nil
	}
	for n, ends := range b.layout.links {
		for _, e := range ends {
			if b.layout.Links[e.link].DAD && !b.layout.isBridge(n) {
				if err := b.awaitAddress(ctx, n); err != nil {
					return fmt.Errorf("link %s: %w", b.layout.Links[e.link].Name, err)
				}
				break
			}
		}
	}
	return nil
}

func (b *builder) awaitAddress(ctx context.Context, node int) error {
	h, err := b.hosts[node].Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := h.AddrList(nil, unix.AF_INET6)
		if err != nil {
			return fmt.Errorf("list addresses of %s: %w", b.layout.Nodes[node].Name, err)
		}
		tentative := ""
		for _, a := range list {
			if a.Flags&ifaFDADFailed != 0 {
				return fmt.Errorf("address %s of %s is used twice (duplicate address detection)", a.IP, b.layout.Nodes[node].Name)
			}
			if a.Flags&unix.IFA_F_TENTATIVE != 0 {
				tentative = a.IP.String()
			}
		}
		if tentative == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for duplicate address detection in %s: %w: %s is still tentative",
				b.layout.Nodes[node].Name, context.Cause(ctx), tentative)
		}
	}
}
