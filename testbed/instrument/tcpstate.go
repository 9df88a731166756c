package instrument

import (
	"encoding/binary"
	"net/netip"
	"strconv"
)

// tcpKey identifies a socket: its addresses, and the cookie that tells a
// reused 4-tuple from its predecessor.
type tcpKey struct {
	local, remote netip.AddrPort
	cookie        uint64
}

// String is the 4-tuple, local end first.
func (k tcpKey) String() string { return k.local.String() + " -> " + k.remote.String() }

// tcpState is what the kernel says of one flow at one instant (struct
// tcp_info). A kernel that knows fewer fields gives fewer: has says so.
type tcpState struct {
	key            tcpKey
	length         int     // bytes of tcp_info that the kernel gave
	rtt            float64 // smoothed, s (RFC 6298)
	minRTT         float64 // s, 0 if unknown
	cwnd           float64 // bytes: segments times the sender's MSS
	retransmitted  uint64  // segments, since the flow began
	delivery       float64 // bit/s of payload, the kernel's latest estimate
	pacing         float64 // bit/s, 0 if not paced
	acked, recv    uint64  // payload bytes acknowledged and received
	dataSegmentOut uint64
}

// Offsets in struct tcp_info (include/uapi/linux/tcp.h); they never change,
// the structure only grows.
const (
	tcpMSS         = 16
	tcpRTT         = 68
	tcpCwnd        = 80
	tcpRetrans     = 100
	tcpPacing      = 104
	tcpBytesAcked  = 120
	tcpBytesRecv   = 128
	tcpMinRTT      = 148
	tcpDataOut     = 156
	tcpDelivery    = 160
	tcpInfoLeast   = 104 // what Linux 2.6 gave
	tcpInfoWithNew = 168 // up to the delivery rate (Linux 4.9)
)

// parseTCPInfo reads struct tcp_info by its length; ok is false if it is
// shorter than any kernel's.
func parseTCPInfo(b []byte, s *tcpState) (ok bool) {
	if len(b) < tcpInfoLeast {
		return false
	}
	ne := binary.NativeEndian
	u32 := func(at int) uint64 { return uint64(ne.Uint32(b[at:])) }
	s.length = len(b)
	s.rtt = float64(u32(tcpRTT)) / 1e6
	s.cwnd = float64(u32(tcpCwnd)) * float64(u32(tcpMSS))
	s.retransmitted = u32(tcpRetrans)
	if len(b) < tcpInfoWithNew {
		return true
	}
	if rate := ne.Uint64(b[tcpPacing:]); rate != ^uint64(0) {
		s.pacing = float64(rate) * 8
	}
	s.acked, s.recv = ne.Uint64(b[tcpBytesAcked:]), ne.Uint64(b[tcpBytesRecv:])
	if m := u32(tcpMinRTT); m != 1<<32-1 {
		s.minRTT = float64(m) / 1e6
	}
	s.dataSegmentOut = u32(tcpDataOut)
	s.delivery = float64(ne.Uint64(b[tcpDelivery:])) * 8
	return true
}

// sends reports whether the flow has sent data: the others' RTT and window say
// nothing.
func (s *tcpState) sends() bool {
	return s.dataSegmentOut > 0 || s.length < tcpInfoWithNew
}

// The parts of a sock_diag message (include/uapi/linux/inet_diag.h).
const (
	diagIDLen   = 48 // struct inet_diag_sockid
	diagMsgLen  = 72 // struct inet_diag_msg
	diagIDAt    = 4  // of the sockid in the message
	diagAttrLen = 4  // struct rtattr
	diagInfo    = 2  // INET_DIAG_INFO
)

// parseDiag reads one struct inet_diag_msg with its attributes; ok is false
// for one without TCP information.
func parseDiag(b []byte) (s tcpState, ok bool) {
	if len(b) < diagMsgLen {
		return s, false
	}
	id := b[diagIDAt : diagIDAt+diagIDLen]
	s.key = tcpKey{
		local:  diagAddress(b[0], id[4:20], id[0:2]),
		remote: diagAddress(b[0], id[20:36], id[2:4]),
		cookie: binary.NativeEndian.Uint64(id[40:]),
	}
	for b = b[diagMsgLen:]; len(b) >= diagAttrLen; {
		n, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if n < diagAttrLen || n > len(b) {
			return s, false
		}
		if kind == diagInfo {
			return s, parseTCPInfo(b[diagAttrLen:n], &s)
		}
		b = b[min(n+(-n&3), len(b)):]
	}
	return s, false
}

// diagAddress reads an address of the family (2 is IPv4) and a port.
func diagAddress(family byte, addr, port []byte) netip.AddrPort {
	p := binary.BigEndian.Uint16(port)
	if family == 2 {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(addr[:4])), p)
	}
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(addr)).Unmap(), p)
}

// flowText names a flow in a record.
func flowText(k tcpKey) map[string]string {
	return map[string]string{
		"local": k.local.String(), "remote": k.remote.String(), "cookie": strconv.FormatUint(k.cookie, 10),
	}
}
