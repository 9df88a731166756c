package testbed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirelab/testbed/netns"
)

// station sends and receives calibration frames at a link's end, on the node's
// own device, whatever the node does with packets: hosts, routers and bridges
// alike. Frames go to a group address that bridges never forward
// (01-80-C2-00-00-0E, IEEE 802.1Q table 8-1) and that no stack answers.
type station struct {
	fd    int
	index int
	mac   net.HardwareAddr
	gso   bool // frames carry a virtio header, to be split into segments
	tx    []byte
}

var groupMAC = net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, 0x0e}

const (
	// etherTypeLocal is for experiments (IEEE 802, local experimental 1).
	etherTypeLocal = 0x88b5
	calibrationTag = 0x574c   // "WL"
	stationBuffer  = 64 << 20 // a train waits in it until the last frame is sent

	virtioHeader = 10 // struct virtio_net_hdr
)

func openStation(ns *netns.NS, d device) (*station, error) {
	fd, err := packetSocket(ns)
	if err != nil {
		return nil, err
	}
	s := &station{fd: fd, index: d.index, mac: d.mac}
	if err := s.configure(); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return s, nil
}

func (s *station) configure() error {
	// Only frames to the group address.
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: binary.BigEndian.Uint32(groupMAC), Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_H | unix.BPF_ABS, K: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: uint32(binary.BigEndian.Uint16(groupMAC[4:])), Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0xffffffff},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog); err != nil {
		return fmt.Errorf("attach filter: %w", err)
	}
	// A smaller buffer than asked loses frames, which do not count.
	_ = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, stationBuffer)
	for _, o := range [][2]int{
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING},
		{unix.SOL_SOCKET, unix.SO_TIMESTAMPNS},
	} {
		if err := unix.SetsockoptInt(s.fd, o[0], o[1], 1); err != nil {
			return fmt.Errorf("configure packet socket: %w", err)
		}
	}
	all := binary.NativeEndian.Uint16([]byte{unix.ETH_P_ALL >> 8, unix.ETH_P_ALL & 0xff})
	return unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: s.index})
}

// prepare lays out the frames of a train: burst segments of size bytes of
// frame each, as one TCP segment train to be split by the link if burst is
// above 1.
func (s *station) prepare(size, burst int) error {
	gso := burst > 1
	if gso != s.gso {
		on := 0
		if gso {
			on = 1
		}
		if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, on); err != nil {
			return fmt.Errorf("configure packet socket: %w", err)
		}
		s.gso = gso
	}
	if !gso {
		s.tx = make([]byte, max(size, trainSmallest))
		copy(s.tx, groupMAC)
		copy(s.tx[6:], s.mac)
		binary.BigEndian.PutUint16(s.tx[12:], etherTypeLocal)
		return nil
	}
	payload := burst * (size - gsoHeader)
	s.tx = make([]byte, virtioHeader+gsoHeader+payload)
	s.layTCP(s.tx, size-gsoHeader, payload)
	return nil
}

// layTCP writes a virtio header and Ethernet, IPv4 and TCP headers. The
// addresses are for documentation (RFC 5737): no node owns them.
func (s *station) layTCP(b []byte, segment, payload int) {
	b[0], b[1] = 1, 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM, VIRTIO_NET_HDR_GSO_TCPV4
	binary.NativeEndian.PutUint16(b[2:], gsoHeader)
	binary.NativeEndian.PutUint16(b[4:], uint16(segment))
	binary.NativeEndian.PutUint16(b[6:], frameHeader+20)
	binary.NativeEndian.PutUint16(b[8:], 16) // of the checksum, in the TCP header
	eth := b[virtioHeader:]
	copy(eth, groupMAC)
	copy(eth[6:], s.mac)
	binary.BigEndian.PutUint16(eth[12:], unix.ETH_P_IP)
	ip := eth[frameHeader:]
	ip[0], ip[8], ip[9] = 0x45, 1, unix.IPPROTO_TCP
	binary.BigEndian.PutUint16(ip[2:], uint16(40+payload))
	copy(ip[12:], []byte{192, 0, 2, 1, 192, 0, 2, 2})
	binary.BigEndian.PutUint16(ip[10:], ^fold(sum(ip[:20])))
	tcp := ip[20:]
	tcp[12], tcp[13] = 5<<4, 0x10 // header of 5 words, ACK
	// The pseudo-header's part of the checksum; the rest is left to whoever
	// splits the packet.
	pseudo := sum(ip[12:20]) + unix.IPPROTO_TCP + uint32(20+payload)
	binary.BigEndian.PutUint16(tcp[16:], fold(pseudo))
}

// sum and fold make up the Internet checksum (RFC 1071); b has an even length.
func sum(b []byte) uint32 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	return s
}

func fold(s uint32) uint16 {
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// send sends the frame of a stream with a number. In a frame of our own type,
// tag, stream and number follow the Ethernet header; in a TCP train they are
// the ports and the sequence number, which every segment gets.
func (s *station) send(stream uint16, seq uint32) error {
	b := s.tx[frameHeader:]
	if s.gso {
		b, seq = s.tx[virtioHeader+frameHeader+20:], seq<<gsoShift
	}
	binary.BigEndian.PutUint16(b, calibrationTag)
	binary.BigEndian.PutUint16(b[2:], stream)
	binary.BigEndian.PutUint32(b[4:], seq)
	to := unix.SockaddrLinklayer{Ifindex: s.index, Halen: 6}
	copy(to.Addr[:], groupMAC)
	return unix.Sendto(s.fd, s.tx, unix.MSG_DONTWAIT, &to)
}

// receive reads what has arrived; yield is told the stream each frame is of.
func (s *station) receive(yield func(stream uint16, a arrival)) error {
	var buf [256]byte
	var control [64]byte
	for {
		n, oobn, _, _, err := unix.Recvmsg(s.fd, buf[:], control[:], unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return fmt.Errorf("receive calibration frame: %w", err)
		}
		stream, a, ok := s.parse(buf[:min(n, len(buf))], n)
		if !ok {
			continue
		}
		if a.at, ok = stamp(control[:oobn]); ok {
			yield(stream, a)
		}
	}
}

// parse reads the beginning of a frame that is length bytes long.
func (s *station) parse(b []byte, length int) (stream uint16, a arrival, ok bool) {
	if s.gso {
		if len(b) < virtioHeader {
			return 0, a, false
		}
		b, length = b[virtioHeader:], length-virtioHeader
	}
	if len(b) < gsoHeader {
		return 0, a, false
	}
	a.bytes = length
	tagged := b[frameHeader:]
	if binary.BigEndian.Uint16(b[12:]) == unix.ETH_P_IP {
		tagged = b[frameHeader+20:]
	}
	a.seq = binary.BigEndian.Uint32(tagged[4:])
	return binary.BigEndian.Uint16(tagged[2:]), a, binary.BigEndian.Uint16(tagged) == calibrationTag
}

// stamp finds the kernel's receive time in a control message.
func stamp(control []byte) (int64, bool) {
	for len(control) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return 0, false
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS && len(data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			return (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano(), true
		}
		control = rest
	}
	return 0, false
}
