package software

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"wirelab/emul"
)

// socketBuffer is the cap in bytes of what may wait in a socket while the
// worker is elsewhere; memory is only used when packets wait. At 20 Gbit/s it
// lasts for 20 ms.
const socketBuffer = 64 << 20

// role is what a socket of a port is for. Two sockets cost a descriptor more
// than one, but the kernel then wakes no reader whenever a sent packet has been
// consumed, and the counts of memory sent and received, which different cores
// change, do not share a cache line.
type role int

const (
	receiving role = iota
	sending
)

// socketsPerPort and per cable, in the order A receiving, A sending, B
// receiving, B sending.
const (
	socketsPerPort  = 2
	socketsPerCable = 2 * socketsPerPort
)

// openPort opens and configures one packet socket of a port.
func openPort(p emul.Port, r role) (*os.File, error) {
	f, err := p.PacketSocket()
	if err != nil {
		return nil, fmt.Errorf("attach %s: %w", p.Device(), err)
	}
	raw, err := f.SyscallConn()
	if err == nil {
		var inner error
		err = raw.Control(func(fd uintptr) { inner = configure(int(fd), p.Index(), r) })
		if err == nil {
			err = inner
		}
	}
	if err != nil {
		_ = f.Close() // the first error says more
		return nil, fmt.Errorf("attach %s: %w", p.Device(), err)
	}
	return f, nil
}

// option is a socket option to be set to 1.
type option struct {
	name       string
	level, opt int
}

// configure makes a receiving socket see what the device receives, never what
// is sent by it, with the virtio header and arrival time of each packet; and a
// sending one send to the device without a queueing discipline.
func configure(fd, index int, r role) error {
	options := []option{
		{"PACKET_VNET_HDR", unix.SOL_PACKET, unix.PACKET_VNET_HDR},
		{"PACKET_QDISC_BYPASS", unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS},
	}
	if r == receiving {
		options = append(options[:1],
			option{"PACKET_AUXDATA", unix.SOL_PACKET, unix.PACKET_AUXDATA},
			option{"PACKET_IGNORE_OUTGOING", unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING},
			option{"SO_TIMESTAMPNS", unix.SOL_SOCKET, unix.SO_TIMESTAMPNS})
	}
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.level, o.opt, 1); err != nil {
			return fmt.Errorf("set %s (needs Linux 4.20 or later): %w", o.name, err)
		}
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("set non-blocking: %w", err)
	}
	// A socket bound to no protocol receives nothing.
	addr := unix.SockaddrLinklayer{Ifindex: index}
	if r == sending {
		buffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF)
	} else {
		buffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF)
		addr.Protocol = hostToNetwork(unix.ETH_P_ALL)
	}
	if err := unix.Bind(fd, &addr); err != nil {
		return fmt.Errorf("bind to device %d: %w", index, err)
	}
	drain(fd)
	return nil
}

// drain empties a new socket: what another device delivered before the bind,
// had the socket been opened for a protocol, is not ours.
func drain(fd int) {
	var b [1]byte
	for {
		if _, _, err := unix.Recvfrom(fd, b[:], unix.MSG_DONTWAIT|unix.MSG_TRUNC); err != nil {
			return
		}
	}
}

// buffer sets the size of a socket buffer, beyond the system's limit if that
// is allowed and up to it otherwise. Too small a buffer shows as overload
// drops.
func buffer(fd, force, plain int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, socketBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, socketBuffer) // the kernel takes its maximum
	}
}

func hostToNetwork(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// kernelDrops is what a socket has lost since the last call because its buffer
// was full. Trains count once: it is a lower bound of packets.
func kernelDrops(fd int) uint64 {
	s, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0
	}
	return uint64(s.Drops)
}
