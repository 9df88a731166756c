package tcp

import "encoding/binary"

// order is the byte order of flow headers.
var order = binary.BigEndian

// infinite is the kernel's ssthresh before the first loss (TCP_INFINITE_SSTHRESH).
const infinite = 0x7fffffff

// info is what we use of the kernel's struct tcp_info (include/uapi/linux/tcp.h).
// Kernels return as much of the structure as they know; a field beyond the
// returned length stays zero.
type info struct {
	length int // bytes the kernel returned

	sndMSS, cwnd, ssthresh    uint32 // bytes, segments, segments
	rtt, rttvar, minRTT       uint32 // us
	retransmits, dataSegments uint32 // total retransmitted, total sent with data
	delivered, deliveredCE    uint32 // segments
	dsackDups, reorderings    uint32
	timeouts                  uint16 // retransmission timeouts (Linux 6.7)
	reordering                uint32 // metric in segments
	pacingRate, deliveryRate  uint64 // bytes/s
	bytesAcked, bytesRetrans  uint64
	busy, rwnd, sndbuf        uint64 // us: busy, and limited by either
}

// offsets into struct tcp_info.
const (
	offSndMSS       = 16
	offRTT          = 68
	offRTTVar       = 72
	offSSThresh     = 76
	offCwnd         = 80
	offReordering   = 88
	offRetransmits  = 100
	offPacingRate   = 104
	offBytesAcked   = 120
	offMinRTT       = 148
	offDataSegsOut  = 156
	offDeliveryRate = 160
	offBusy         = 168
	offRwnd         = 176
	offSndbuf       = 184
	offDelivered    = 192
	offDeliveredCE  = 196
	offBytesRetrans = 208
	offDSACKDups    = 216
	offReordSeen    = 220
	offTotalRTO     = 240
)

// hasTimeouts tells whether the kernel counts retransmission timeouts.
func (i *info) hasTimeouts() bool { return i.length >= offTotalRTO+2 }

// parseInfo reads what the kernel returned.
func parseInfo(b []byte) info {
	u16 := func(at int) uint16 {
		if len(b) < at+2 {
			return 0
		}
		return binary.NativeEndian.Uint16(b[at:])
	}
	u32 := func(at int) uint32 {
		if len(b) < at+4 {
			return 0
		}
		return binary.NativeEndian.Uint32(b[at:])
	}
	u64 := func(at int) uint64 {
		if len(b) < at+8 {
			return 0
		}
		return binary.NativeEndian.Uint64(b[at:])
	}
	return info{
		length: len(b),
		sndMSS: u32(offSndMSS), cwnd: u32(offCwnd), ssthresh: u32(offSSThresh),
		rtt: u32(offRTT), rttvar: u32(offRTTVar), minRTT: u32(offMinRTT),
		retransmits: u32(offRetransmits), dataSegments: u32(offDataSegsOut),
		delivered: u32(offDelivered), deliveredCE: u32(offDeliveredCE),
		dsackDups: u32(offDSACKDups), reorderings: u32(offReordSeen), timeouts: u16(offTotalRTO),
		reordering: u32(offReordering),
		pacingRate: u64(offPacingRate), deliveryRate: u64(offDeliveryRate),
		bytesAcked: u64(offBytesAcked), bytesRetrans: u64(offBytesRetrans),
		busy: u64(offBusy), rwnd: u64(offRwnd), sndbuf: u64(offSndbuf),
	}
}
