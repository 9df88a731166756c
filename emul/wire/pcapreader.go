package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxPcapBlock bounds a block of a file that is read, in bytes.
const maxPcapBlock = 64 << 20

// PcapError says where a capture file breaks off or makes no sense. All
// packets before it have been returned. Truncated files, as a killed capture
// leaves them, answer errors.Is(err, io.ErrUnexpectedEOF).
type PcapError struct {
	Offset int64 // in bytes, of the block or packet
	Reason string
	Err    error // may be nil
}

// Error implements error.
func (e *PcapError) Error() string {
	return fmt.Sprintf("capture file at byte %d: %s", e.Offset, e.Reason)
}

// Unwrap returns the cause.
func (e *PcapError) Unwrap() error { return e.Err }

// PcapReader reads capture files: pcapng in either byte order and with any
// number of sections (draft-ietf-opsawg-pcapng), and classic pcap with
// microseconds or nanoseconds (draft-ietf-opsawg-pcap).
type PcapReader struct {
	r          *bufio.Reader
	offset     int64 // of the next block or packet
	order      binary.ByteOrder
	classic    bool
	nano       bool // of a classic file
	base       int  // index of the section's first interface
	interfaces []PcapInterface
	buf        []byte
	err        error
}

// NewPcapReader starts reading; it fails if r is no capture file.
func NewPcapReader(r io.Reader) (*PcapReader, error) {
	p := &PcapReader{r: bufio.NewReaderSize(r, 64<<10)}
	head, err := p.r.Peek(4)
	if err != nil {
		return nil, p.broken("not a capture file: it is shorter than 4 bytes", io.ErrUnexpectedEOF)
	}
	switch magic := binary.LittleEndian.Uint32(head); magic {
	case blockSection:
		if err := p.section(); err != nil {
			return nil, err
		}
		return p, nil
	case 0xa1b2c3d4, 0xa1b23c4d:
		p.order, p.nano = binary.LittleEndian, magic == 0xa1b23c4d
	case 0xd4c3b2a1, 0x4d3cb2a1:
		p.order, p.nano = binary.BigEndian, magic == 0x4d3cb2a1
	default:
		return nil, p.broken(fmt.Sprintf("not a capture file: it begins with %#08x", magic), nil)
	}
	p.classic = true
	b, err := p.take(24)
	if err != nil {
		return nil, err
	}
	p.interfaces = []PcapInterface{{LinkType: p.order.Uint16(b[20:]), SnapLen: p.order.Uint32(b[16:])}}
	if p.order == binary.ByteOrder(binary.BigEndian) { // the link type is the low half of 32 bits
		p.interfaces[0].LinkType = p.order.Uint16(b[22:])
	}
	p.offset = 24
	return p, nil
}

// Interfaces are those described so far, of all sections.
func (p *PcapReader) Interfaces() []PcapInterface { return p.interfaces }

// Next returns the next packet, io.EOF at the end of a whole file, or a
// [PcapError]. After an error it returns the same one again.
func (p *PcapReader) Next() (PcapPacket, error) {
	for p.err == nil {
		var pkt PcapPacket
		var found bool
		if p.classic {
			pkt, p.err = p.record()
			found = p.err == nil
		} else {
			pkt, found, p.err = p.block()
		}
		if found && p.err == nil {
			return pkt, nil
		}
	}
	return PcapPacket{}, p.err
}

func (p *PcapReader) broken(reason string, err error) error {
	return &PcapError{Offset: p.offset, Reason: reason, Err: err}
}

// take reads n bytes into the reader's buffer. What a broken file says about
// its sizes is not believed before the bytes are there.
func (p *PcapReader) take(n int) ([]byte, error) {
	const step = 1 << 20
	p.buf = p.buf[:0]
	for len(p.buf) < n {
		have := len(p.buf)
		more := min(n-have, step)
		if cap(p.buf) < have+more {
			p.buf = append(p.buf, make([]byte, more)...)
		} else {
			p.buf = p.buf[:have+more]
		}
		m, err := io.ReadFull(p.r, p.buf[have:])
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, p.broken("reading failed: "+err.Error(), err)
			}
			return nil, p.broken(fmt.Sprintf("the file ends %d bytes early", n-have-m), io.ErrUnexpectedEOF)
		}
	}
	return p.buf, nil
}

// record reads one packet of a classic file.
func (p *PcapReader) record() (PcapPacket, error) {
	if _, err := p.r.Peek(1); err != nil {
		return PcapPacket{}, p.end(err)
	}
	b, err := p.take(16)
	if err != nil {
		return PcapPacket{}, err
	}
	fraction := int64(p.order.Uint32(b[4:]))
	if !p.nano {
		fraction *= 1000
	}
	pkt := PcapPacket{Time: int64(p.order.Uint32(b))*1e9 + fraction, Length: int(p.order.Uint32(b[12:]))}
	n := p.order.Uint32(b[8:])
	if n > maxPcapBlock {
		return PcapPacket{}, p.broken(fmt.Sprintf("a packet of %d bytes makes no sense", n), nil)
	}
	if pkt.Data, err = p.take(int(n)); err != nil {
		return PcapPacket{}, err
	}
	p.offset += 16 + int64(n)
	return pkt, nil
}

// end tells a file's end from a failure to read it.
func (p *PcapReader) end(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return p.broken("reading failed: "+err.Error(), err)
}

// section reads a section header, which sets the byte order of what follows.
func (p *PcapReader) section() error {
	b, err := p.r.Peek(12)
	if err != nil {
		return p.broken("the file ends within a section header", io.ErrUnexpectedEOF)
	}
	switch {
	case binary.LittleEndian.Uint32(b[8:]) == byteOrderMagic:
		p.order = binary.LittleEndian
	case binary.BigEndian.Uint32(b[8:]) == byteOrderMagic:
		p.order = binary.BigEndian
	default:
		return p.broken("a section header without a byte order", nil)
	}
	body, err := p.body()
	if err != nil {
		return err
	}
	if len(body) < 16 {
		return p.broken("a section header that is too short", nil)
	}
	if major := p.order.Uint16(body[4:]); major != 1 {
		return p.broken(fmt.Sprintf("version %d of the format is not known", major), nil)
	}
	p.base = len(p.interfaces)
	p.advance(body)
	return nil
}

// body reads a block and returns what lies between its lengths.
func (p *PcapReader) body() ([]byte, error) {
	head, err := p.r.Peek(8)
	if err != nil {
		return nil, p.broken("the file ends within a block's header", io.ErrUnexpectedEOF)
	}
	size := p.order.Uint32(head[4:])
	if size < 12 || size%4 != 0 || size > maxPcapBlock {
		return nil, p.broken(fmt.Sprintf("a block of %d bytes makes no sense", size), nil)
	}
	b, err := p.take(int(size))
	if err != nil {
		return nil, err
	}
	if again := p.order.Uint32(b[size-4:]); again != size {
		return nil, p.broken(fmt.Sprintf("a block gives its length as %d, then as %d", size, again), nil)
	}
	return b[8 : size-4], nil
}

// advance moves the offset past a block.
func (p *PcapReader) advance(body []byte) { p.offset += int64(len(body)) + 12 }

// block reads one block; found says that it holds a packet.
func (p *PcapReader) block() (pkt PcapPacket, found bool, err error) {
	if _, err := p.r.Peek(1); err != nil {
		return pkt, false, p.end(err)
	}
	head, err := p.r.Peek(4)
	if err != nil {
		return pkt, false, p.broken("the file ends within a block's header", io.ErrUnexpectedEOF)
	}
	kind := p.order.Uint32(head)
	if kind == blockSection { // the same in both orders
		return pkt, false, p.section()
	}
	body, err := p.body()
	if err != nil {
		return pkt, false, err
	}
	switch kind {
	case blockInterface:
		err = p.addInterface(body)
	case blockEnhanced, blockPacketOld, blockSimple:
		pkt, err = p.packet(kind, body)
		found = true
	case blockStatistics:
		err = p.statistics(body)
	}
	if err == nil {
		p.advance(body)
	}
	return pkt, found, err
}
