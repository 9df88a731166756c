package instrument

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirelab/emul/wire"
)

// retireAfterMS is after how long the kernel hands over a block that is not
// full, in milliseconds.
const retireAfterMS = 40

// ring is a memory-mapped packet ring of one device (PACKET_MMAP, version 3):
// the kernel fills blocks with packets, and hands over whole blocks.
type ring struct {
	fd     int
	memory []byte
	blocks int
	next   int // block to be handed over next
	snap   int
	frame  []byte // to put a VLAN tag back in
}

// Offsets in a block's header (struct tpacket_block_desc with tpacket_hdr_v1)
// and in a packet's (struct tpacket3_hdr, then struct sockaddr_ll).
const (
	blockStatus = 8
	blockCount  = 12
	blockFirst  = 16

	packetNext    = 0
	packetSec     = 4
	packetNsec    = 8
	packetKept    = 12
	packetLength  = 16
	packetStatus  = 20
	packetMAC     = 24
	packetVLAN    = 32
	packetVLANTag = 36
	packetType    = 48 + 10
	packetHeader  = 48 + 20
)

// openRing opens a ring on a device, inside the namespace; packets are kept
// from the moment it returns.
func openRing(ns Namespace, d Device, snap, size int) (*ring, error) {
	r := &ring{fd: -1, snap: snap, blocks: max(2, size/captureBlock), frame: make([]byte, 0, snap+wire.VLANLen)}
	err := ns.Do(func() error {
		// The protocol comes with bind: nothing is received until then.
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open a packet socket: %w", err)
		}
		r.fd = fd
		index := d.Index
		if index == 0 {
			i, err := net.InterfaceByName(d.Name)
			if err != nil {
				return err
			}
			index = i.Index
		}
		return r.bind(index)
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("capture at %s:%s: %w", d.Node, d.Name, err), r.close())
	}
	return r, nil
}

// bind maps the ring and connects it to the device.
func (r *ring) bind(index int) error {
	if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return fmt.Errorf("ask for packet rings of version 3: %w", err)
	}
	if err := r.keep(uint32(r.snap)); err != nil {
		return err
	}
	const frame = 2048 // only has to divide the block
	request := unix.TpacketReq3{
		Block_size: captureBlock, Block_nr: uint32(r.blocks),
		Frame_size: frame, Frame_nr: uint32(r.blocks * captureBlock / frame), Retire_blk_tov: retireAfterMS,
	}
	if err := unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &request); err != nil {
		return fmt.Errorf("reserve a ring of %d bytes (set a smaller one): %w", r.blocks*captureBlock, err)
	}
	var err error
	if r.memory, err = unix.Mmap(r.fd, 0, r.blocks*captureBlock, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return fmt.Errorf("map the ring: %w", err)
	}
	return unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: index})
}

// keep sets how many bytes of a packet the kernel copies: a filter program
// that accepts every packet with this length. 0 refuses all packets.
func (r *ring) keep(bytes uint32) error {
	program := [1]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: bytes}}
	err := unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &program[0]})
	if err != nil {
		return fmt.Errorf("set the snap length: %w", err)
	}
	return nil
}

func htons(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}

// status is the status word of the block that comes next.
func (r *ring) status() *uint32 {
	return (*uint32)(unsafe.Pointer(&r.memory[r.next*captureBlock+blockStatus]))
}

// ready says whether a block is handed over.
func (r *ring) ready() bool {
	return atomic.LoadUint32(r.status())&unix.TP_STATUS_USER != 0
}

// drain calls fn for the packets of the blocks that are handed over, and gives
// the blocks back; at most the whole ring, so that it ends however fast the
// packets come. Data is valid during the call only.
func (r *ring) drain(fn func(*wire.PcapPacket) error) error {
	for n := 0; n < r.blocks && r.ready(); n++ {
		err := r.block(r.memory[r.next*captureBlock:][:captureBlock], fn)
		atomic.StoreUint32(r.status(), unix.TP_STATUS_KERNEL)
		r.next = (r.next + 1) % r.blocks
		if err != nil {
			return err
		}
	}
	return nil
}

// block walks through the packets of one block.
func (r *ring) block(b []byte, fn func(*wire.PcapPacket) error) error {
	ne := binary.NativeEndian
	at := int(ne.Uint32(b[blockFirst:]))
	for range ne.Uint32(b[blockCount:]) {
		if at+packetHeader > len(b) {
			return errors.New("the kernel's packet ring makes no sense")
		}
		h := b[at:]
		status := ne.Uint32(h[packetStatus:])
		mac, kept := int(ne.Uint16(h[packetMAC:])), int(ne.Uint32(h[packetKept:]))
		if mac+kept > len(h) {
			return errors.New("the kernel's packet ring makes no sense")
		}
		pkt := wire.PcapPacket{
			Time:   int64(ne.Uint32(h[packetSec:]))*1e9 + int64(ne.Uint32(h[packetNsec:])),
			Length: int(ne.Uint32(h[packetLength:])), Data: h[mac : mac+kept], Flags: pcapFlags(h[packetType], status),
		}
		if status&unix.TP_STATUS_VLAN_VALID != 0 {
			r.retag(&pkt, ne.Uint16(h[packetVLAN:]), ne.Uint16(h[packetVLANTag:]), status)
		}
		if err := fn(&pkt); err != nil {
			return err
		}
		at += int(ne.Uint32(h[packetNext:]))
	}
	return nil
}

// retag puts back the VLAN tag that the kernel took out of the frame.
func (r *ring) retag(pkt *wire.PcapPacket, tci, tpid uint16, status uint32) {
	const addresses = 12
	if len(pkt.Data) < addresses {
		return
	}
	if status&unix.TP_STATUS_VLAN_TPID_VALID == 0 {
		tpid = wire.EtherTypeVLAN
	}
	f := append(r.frame[:0], pkt.Data[:addresses]...)
	f = binary.BigEndian.AppendUint16(f, tpid)
	f = binary.BigEndian.AppendUint16(f, tci)
	f = append(f, pkt.Data[addresses:]...)
	pkt.Data, pkt.Length = f, pkt.Length+wire.VLANLen
}

// pcapFlags translates what the kernel says of a packet.
func pcapFlags(kind byte, status uint32) wire.PcapFlags {
	f := wire.PcapInbound
	if kind == unix.PACKET_OUTGOING {
		f = wire.PcapOutbound
	}
	if status&unix.TP_STATUS_CSUMNOTREADY != 0 {
		f |= wire.PcapChecksumNotReady
	}
	if status&unix.TP_STATUS_CSUM_VALID != 0 {
		f |= wire.PcapChecksumValid
	}
	if status&unix.TP_STATUS_GSO_TCP != 0 {
		f |= wire.PcapSegmentation
	}
	return f
}

// statistics are the packets seen and of them dropped since the last call.
func (r *ring) statistics() (seen, dropped uint64, err error) {
	s, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
	if err != nil {
		return 0, 0, fmt.Errorf("read the capture's own losses: %w", err)
	}
	return uint64(s.Packets), uint64(s.Drops), nil
}

func (r *ring) close() error {
	var errs []error
	if r.memory != nil {
		errs = append(errs, unix.Munmap(r.memory))
	}
	if r.fd >= 0 {
		errs = append(errs, unix.Close(r.fd))
	}
	return errors.Join(errs...)
}
