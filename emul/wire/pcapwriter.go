package wire

import (
	"encoding/binary"
	"fmt"
	"io"
)

// The block types of a pcapng file (draft-ietf-opsawg-pcapng, section 4).
const (
	blockSection    = 0x0a0d0d0a
	blockInterface  = 1
	blockPacketOld  = 2
	blockSimple     = 3
	blockStatistics = 5
	blockEnhanced   = 6

	byteOrderMagic = 0x1a2b3c4d
)

// LinkTypeEthernet is the link type of Ethernet frames (LINKTYPE_ETHERNET).
const LinkTypeEthernet = 1

// The option codes that are written or read (same draft, section 4).
const (
	optEnd            = 0
	optSectionOS      = 3
	optSectionApp     = 4
	optInterfaceName  = 2
	optInterfaceText  = 3
	optInterfaceTicks = 9
	optInterfaceShift = 14
	optPacketFlags    = 2
	optStatsStart     = 2
	optStatsEnd       = 3
	optStatsReceived  = 4
	optStatsDropped   = 7 // by the operating system, for want of room
)

// PcapFlags are the flags of a captured packet (same draft, section 4.3,
// epb_flags).
type PcapFlags uint32

// The flags: the direction seen from the interface, and what offloads left
// undone when the packet was seen.
const (
	PcapInbound          PcapFlags = 1
	PcapOutbound         PcapFlags = 2
	PcapChecksumNotReady PcapFlags = 1 << 9  // the sender's device is to fill it in
	PcapChecksumValid    PcapFlags = 1 << 10 // already checked by the receiving path
	PcapSegmentation     PcapFlags = 1 << 11 // a TCP super-packet, to be or already joined
)

// PcapInterface is one interface of a capture file.
type PcapInterface struct {
	Name        string
	Description string
	LinkType    uint16
	SnapLen     uint32 // bytes kept of a packet, 0 for all
	// Stats is filled by the reader from the file's last statistics of the
	// interface; nil if it has none.
	Stats *PcapStats

	ticks  uint64 // per second
	offset int64  // seconds added to every timestamp
}

// PcapPacket is one captured packet.
type PcapPacket struct {
	Interface int    // index of its interface in the file
	Time      int64  // ns since 1970-01-01 UTC
	Length    int    // bytes of the packet when it was seen, Data may be shorter
	Data      []byte // of the reader: valid until the next call
	Flags     PcapFlags
}

// PcapStats are an interface's own counters.
type PcapStats struct {
	Start, End        int64  // ns since 1970-01-01 UTC
	Received, Dropped uint64 // packets seen, and those of them not kept for want of room
}

// PcapWriter writes a pcapng file with nanosecond timestamps. It is buffered
// and not safe for concurrent use. Its first error sticks.
type PcapWriter struct {
	w       io.Writer
	buf     []byte // its capacity is fixed
	written int64  // including what is buffered
	snap    []uint32
	err     error
}

// pcapBuffer is how much the writer gathers before it writes.
const pcapBuffer = 256 << 10

// NewPcapWriter starts a file with one section and its interfaces. Application
// names the writing program, and may be empty.
func NewPcapWriter(w io.Writer, application string, interfaces []PcapInterface) (*PcapWriter, error) {
	p := &PcapWriter{w: w, buf: make([]byte, 0, pcapBuffer)}
	var body []byte
	body = binary.LittleEndian.AppendUint32(body, byteOrderMagic)
	body = binary.LittleEndian.AppendUint16(body, 1) // version 1.0
	body = binary.LittleEndian.AppendUint16(body, 0)
	body = binary.LittleEndian.AppendUint64(body, ^uint64(0)) // length not given
	body = appendOption(body, optSectionOS, "Linux")
	body = appendOption(body, optSectionApp, application)
	p.block(blockSection, endOptions(body))
	for _, i := range interfaces {
		p.snap = append(p.snap, i.SnapLen)
		body = binary.LittleEndian.AppendUint16(body[:0], i.LinkType)
		body = binary.LittleEndian.AppendUint16(body, 0)
		body = binary.LittleEndian.AppendUint32(body, i.SnapLen)
		body = appendOption(body, optInterfaceName, i.Name)
		body = appendOption(body, optInterfaceText, i.Description)
		body = appendOption(body, optInterfaceTicks, "\x09") // 10^-9 s
		p.block(blockInterface, endOptions(body))
	}
	return p, p.Flush()
}

// appendOption appends one option, none if it is empty.
func appendOption(b []byte, code uint16, value string) []byte {
	if value == "" || len(value) > 0xffff {
		return b
	}
	b = binary.LittleEndian.AppendUint16(b, code)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(value)))
	b = append(b, value...)
	return append(b, make([]byte, -len(value)&3)...)
}

func endOptions(b []byte) []byte { return append(b, 0, 0, 0, 0) }

// block writes one whole block; used for the rare ones.
func (p *PcapWriter) block(kind uint32, body []byte) {
	size := uint32(12 + len(body))
	b := p.room(int(size))
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = binary.LittleEndian.AppendUint32(b, size)
	b = append(b, body...)
	p.done(binary.LittleEndian.AppendUint32(b, size))
}

// room returns the buffer with space for n more bytes, flushed if necessary.
func (p *PcapWriter) room(n int) []byte {
	if len(p.buf)+n > cap(p.buf) {
		_ = p.Flush() // the error sticks
	}
	return p.buf
}

// done takes the buffer back after something was appended.
func (p *PcapWriter) done(b []byte) {
	p.written += int64(len(b) - len(p.buf))
	p.buf = b
}

// enhancedHead is the size of an enhanced packet block before its data,
// enhancedTail after it: the flags option, the end of options, the length.
const (
	enhancedHead = 28
	enhancedTail = 16
)

// WritePacket appends a packet, cut to its interface's snap length. It does
// not keep p.Data and does not allocate.
func (p *PcapWriter) WritePacket(pkt *PcapPacket) error {
	if p.err != nil {
		return p.err
	}
	if pkt.Interface < 0 || pkt.Interface >= len(p.snap) {
		return fmt.Errorf("write packet: interface %d is not one of the file's %d", pkt.Interface, len(p.snap))
	}
	data := pkt.Data
	if snap := p.snap[pkt.Interface]; snap > 0 && len(data) > int(snap) {
		data = data[:snap]
	}
	pad := -len(data) & 3
	size := enhancedHead + len(data) + pad + enhancedTail
	if size > pcapBuffer {
		return fmt.Errorf("write packet: %d bytes are more than a capture file takes; set a snap length", len(data))
	}
	le := binary.LittleEndian
	b := p.room(size)
	b = le.AppendUint32(b, blockEnhanced)
	b = le.AppendUint32(b, uint32(size))
	b = le.AppendUint32(b, uint32(pkt.Interface))
	b = le.AppendUint32(b, uint32(uint64(pkt.Time)>>32))
	b = le.AppendUint32(b, uint32(pkt.Time))
	b = le.AppendUint32(b, uint32(len(data)))
	b = le.AppendUint32(b, uint32(max(pkt.Length, len(data))))
	b = append(b, data...)
	b = append(b, "\x00\x00\x00"[:pad]...)
	b = le.AppendUint16(b, optPacketFlags)
	b = le.AppendUint16(b, 4)
	b = le.AppendUint32(b, uint32(pkt.Flags))
	b = le.AppendUint32(b, optEnd)
	p.done(le.AppendUint32(b, uint32(size)))
	return p.err
}

// WriteStats appends an interface's counters.
func (p *PcapWriter) WriteStats(iface int, s PcapStats) error {
	le := binary.LittleEndian
	stamp := func(b []byte, t int64) []byte {
		b = le.AppendUint32(b, uint32(uint64(t)>>32))
		return le.AppendUint32(b, uint32(t))
	}
	option := func(b []byte, code uint16) []byte {
		b = le.AppendUint16(b, code)
		return le.AppendUint16(b, 8)
	}
	b := le.AppendUint32(nil, uint32(iface))
	b = stamp(b, s.End)
	b = stamp(option(b, optStatsStart), s.Start)
	b = stamp(option(b, optStatsEnd), s.End)
	b = le.AppendUint64(option(b, optStatsReceived), s.Received)
	b = le.AppendUint64(option(b, optStatsDropped), s.Dropped)
	p.block(blockStatistics, endOptions(b))
	return p.err
}

// Size is the length of the file so far in bytes, what is buffered included.
func (p *PcapWriter) Size() int64 { return p.written }

// Flush writes what is buffered.
func (p *PcapWriter) Flush() error {
	if p.err == nil && len(p.buf) > 0 {
		if _, err := p.w.Write(p.buf); err != nil {
			p.err = fmt.Errorf("write capture: %w", err)
		}
	}
	p.buf = p.buf[:0]
	return p.err
}
