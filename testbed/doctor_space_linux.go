package testbed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// errAbsent marks what the kernel does not have, as opposed to what it refuses.
var errAbsent = errors.New("this kernel does not have it")

const notNeeded = "Nothing needs it as long as emulation is \"software\" or \"auto\"."

// spaceProbes are tried in this order; veth comes first, others use its pair.
var spaceProbes = []spaceProbe{
	{name: "veth", needed: true, module: "veth", try: probeVeth},
	{name: "packet sockets", needed: true, module: "af_packet", remedy: "CAP_NET_RAW is needed.", try: probePacket},
	{name: "sysctls", needed: true, remedy: "/proc/sys is read-only: run the container with --privileged.", try: probeSysctl},
	{name: "bridge", module: "bridge", remedy: "Only topologies with nodes of kind \"bridge\" need it.", try: probeBridge},
	{name: "IPv6", remedy: "Labs run with IPv4 alone. Boot without ipv6.disable=1 to have both.", try: probeIPv6},
	{name: "tun", module: "tun", remedy: "Only programs that make tunnels need it.", try: probeTun},
	qdisc(1, "netem"), qdisc(2, "tbf"), qdisc(3, "htb"), qdisc(4, "fq"), qdisc(5, "fq_codel"), qdisc(6, "codel"),
	qdisc(7, "red"), qdisc(8, "pie"), qdisc(9, "cake"),
}

const (
	probeLeft  = "probe0"
	probeRight = "probe1"
)

// within opens a netlink batch in the namespace of the thread for a probe.
func within(fn func(b *batch) error) error {
	b, err := openBatch()
	if err != nil {
		return err
	}
	return errors.Join(fn(b), b.close())
}

// absent marks the errors by which the kernel says that it lacks something.
func absent(err error) error {
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EAFNOSUPPORT) {
		return fmt.Errorf("%w: %w", errAbsent, err)
	}
	return err
}

func probeVeth() (string, error) {
	return "made a pair", within(func(b *batch) error {
		l := device{probeLeft, 10, macAddress(0x0a, end{0, 0})}
		r := device{probeRight, 11, macAddress(0x0a, end{0, 1})}
		self, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(self)
		req := vethRequest(l, r, self, defaultMTU)
		return absent(errors.Join(
			b.add("make a veth pair", req),
			b.add("bring it up", upRequest(l, "", 0)),
			b.add("bring it up", upRequest(r, "", 0)),
			b.flush()))
	})
}

// probePacket sends a frame with a virtio header across the pair and receives
// it with the kernel's time: what the software backend and captures do.
func probePacket() (string, error) {
	var fds [2]int
	for i, index := range []int{10, 11} {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return "", fmt.Errorf("open: %w", absent(err))
		}
		defer unix.Close(fd)
		for _, o := range [][2]int{{unix.SOL_PACKET, unix.PACKET_VNET_HDR}, {unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING}, {unix.SOL_SOCKET, unix.SO_TIMESTAMPNS}} {
			if err := unix.SetsockoptInt(fd, o[0], o[1], 1); err != nil {
				return "", fmt.Errorf("configure: %w", err)
			}
		}
		timeout := unix.NsecToTimeval(int64(20 * time.Millisecond))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
			return "", err
		}
		all := binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL})
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: index}); err != nil {
			return "", fmt.Errorf("bind: %w", err)
		}
		fds[i] = fd
	}
	frame := make([]byte, virtioHeader+trainSmallest)
	copy(frame[virtioHeader:], groupMAC)
	binary.BigEndian.PutUint16(frame[virtioHeader+12:], etherTypeLocal)
	var buf [2048]byte
	for start := time.Now(); time.Since(start) < 5*time.Second; {
		if _, err := unix.Write(fds[0], frame); err != nil && !errors.Is(err, unix.ENETDOWN) && !errors.Is(err, unix.ENOBUFS) {
			return "", fmt.Errorf("send: %w", err)
		}
		// A veth may lose its first frames, and the kernel sends some of its own.
		n, err := unix.Read(fds[1], buf[:])
		if err == nil && n >= virtioHeader+frameHeader && binary.BigEndian.Uint16(buf[virtioHeader+12:]) == etherTypeLocal {
			return "a frame with a virtio header crossed a veth pair; captures work", nil
		}
	}
	return "", errors.New("no frame crossed a veth pair within 5 s")
}

func probeSysctl() (string, error) {
	s := nodeSysctls(KindRouter, hasIPv6(), true)
	return fmt.Sprintf("set %d", len(s)), set(s)
}

func probeBridge() (string, error) {
	return "made one with a port", within(func(b *batch) error {
		return absent(errors.Join(
			b.add("make a bridge", bridgeRequest(20)),
			b.add("add a port", upRequest(device{index: 11}, "", 20)),
			b.flush()))
	})
}

func probeIPv6() (string, error) {
	if !hasIPv6() {
		return "", fmt.Errorf("%w: /proc/sys/net/ipv6 is missing", errAbsent)
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", absent(err)
	}
	return "opened a socket", unix.Close(fd)
}

func probeTun() (string, error) {
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%w: %w", errAbsent, err)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, err := unix.NewIfreq("probetap")
	if err != nil {
		return "", err
	}
	r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(int(f.Fd()), unix.TUNSETIFF, r); err != nil {
		return "", fmt.Errorf("make a tap device: %w", err)
	}
	return "made a tap device", nil
}

// qdisc probes a queueing discipline by putting it on a device, in the place of
// the one probed before. The numbers keep the kernel from taking it for that.
func qdisc(number uint16, kind string) spaceProbe {
	return spaceProbe{name: "qdisc " + kind, module: "sch_" + kind, remedy: notNeeded, try: func() (string, error) {
		return "put it on a device", within(func(b *batch) error {
			req := nl.NewNetlinkRequest(unix.RTM_NEWQDISC, unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
			req.AddData(&nl.TcMsg{Family: nl.FAMILY_ALL, Ifindex: 10, Handle: netlink.MakeHandle(number, 0), Parent: netlink.HANDLE_ROOT})
			req.AddData(nl.NewRtAttr(nl.TCA_KIND, nl.ZeroTerminated(kind)))
			if data := qdiscOptions(kind); data != nil {
				req.AddData(data)
			}
			err := errors.Join(b.add("add it", req), b.flush())
			if errors.Is(err, unix.EINVAL) {
				return nil // it is there and wants options that it was not given
			}
			return absent(err)
		})
	}}
}

// qdiscOptions are those of the disciplines that insist on some.
func qdiscOptions(kind string) *nl.RtAttr {
	switch kind {
	case "netem":
		return nl.NewRtAttr(nl.TCA_OPTIONS, bytesOf(&nl.TcNetemQopt{Limit: 1000}))
	case "htb":
		o := nl.NewRtAttr(nl.TCA_OPTIONS, nil)
		o.AddRtAttr(nl.TCA_HTB_INIT, bytesOf(&nl.TcHtbGlob{Version: 3, Rate2Quantum: 10}))
		return o
	}
	return nil
}

func bytesOf[T any](v *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}
