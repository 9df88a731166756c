package software

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirelab/emul/wire"
)

// A packet lies in one slot of one of three sizes, behind its description. A
// socket reads into slots of the largest size; a packet that fits a smaller
// one is moved there, which costs little against the system calls and keeps a
// long delay line from holding a large slot per small packet.
const (
	descLen = 128
	// A slot leaves room for a VLAN tag to be put back. The frame begins where
	// the payload after the most usual headers (Ethernet, IPv4, TCP with time
	// stamps: 66 bytes) falls on a cache line: copies between unaligned lines
	// take half as long again.
	vnetAt = descLen + 52
	dataAt = vnetAt + wire.VNetLen

	// The sizes are odd numbers of cache lines, so that the beginnings of
	// slots do not compete for the same places in the cache.
	smallSlot  = 35 * 64
	middleSlot = 257 * 64
	bigSlot    = 1037 * 64

	// The frames that fit: an MTU of 1500 and more, a quarter of the largest
	// train, and the largest (64 KiB and its headers).
	smallData  = smallSlot - dataAt
	middleData = middleSlot - dataAt
	bigData    = bigSlot - dataAt
)

// slotSizes are the classes.
var slotSizes = [...]int{smallSlot, middleSlot, bigSlot}

const (
	small = iota
	middle
	big
)

// slot names a slot: its class in the two highest bits, its number below.
type slot uint32

const classShift = 30

func (s slot) class() int     { return int(s >> classShift) }
func (s slot) number() uint32 { return uint32(s) & (1<<classShift - 1) }

// packet is a received frame, shared by the runs of its segments that have not
// left yet. It is the start of its slot.
type packet struct {
	self  slot
	refs  int32  // runs of segments in delay lines or being sent
	start uint16 // of the virtio header in the slot
	train wire.Train
}

// pool is the slots of one class: equal pieces of anonymous memory. Pages
// become real when first touched, and freed slots are used again first, so a
// pool costs what was in use at the worst moment.
type pool struct {
	mem    []byte
	base   unsafe.Pointer
	size   uintptr
	unused uint32 // slots from here on were never handed out
	limit  uint32
	free   []slot
}

func newPool(size, bytes int) (pool, error) {
	n := min(max(bytes/size, 256), 1<<classShift-1)
	mem, err := unix.Mmap(-1, 0, n*size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return pool{}, fmt.Errorf("reserve %d bytes for packets: %w", n*size, err)
	}
	return pool{mem: mem, base: unsafe.Pointer(&mem[0]), size: uintptr(size), limit: uint32(n)}, nil
}

// arena holds the packets of one worker.
type arena struct {
	pools   [len(slotSizes)]pool
	touched int // bytes of slots ever handed out
	limit   int // of touched
}

func newArena(limit int) (*arena, error) {
	a := &arena{limit: limit}
	for class, size := range slotSizes {
		var err error
		if a.pools[class], err = newPool(size, limit); err != nil {
			a.close()
			return nil, err
		}
	}
	return a, nil
}

func (a *arena) close() {
	for i := range a.pools {
		if a.pools[i].mem != nil {
			_ = unix.Munmap(a.pools[i].mem) // nothing can be done about it
		}
	}
}

// take hands out a slot; ok is false where that would exceed the limit.
func (a *arena) take(class int) (s slot, ok bool) {
	p := &a.pools[class]
	if n := len(p.free); n > 0 {
		s = p.free[n-1]
		p.free = p.free[:n-1]
		return s, true
	}
	if p.unused == p.limit || a.touched+int(p.size) > a.limit {
		return 0, false
	}
	a.touched += int(p.size)
	p.unused++
	return slot(class)<<classShift | slot(p.unused-1), true
}

func (a *arena) packet(s slot) *packet {
	p := &a.pools[s.class()]
	return (*packet)(unsafe.Add(p.base, uintptr(s.number())*p.size))
}

// release gives up one run of the packet. It returns the memory that became
// free with the last one, in bytes.
func (a *arena) release(p *packet) int {
	p.refs--
	if p.refs > 0 {
		return 0
	}
	class := p.self.class()
	a.pools[class].free = append(a.pools[class].free, p.self)
	return slotSizes[class]
}

// memory is what the packet takes, in bytes.
func (p *packet) memory() int { return slotSizes[p.self.class()] }

// at is the byte of the slot at an offset.
func (p *packet) at(offset int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), offset)) }

// vnet is the virtio header, and frame what follows it.
func (p *packet) vnet() []byte { return unsafe.Slice(p.at(int(p.start)), wire.VNetLen) }

func (p *packet) frame() []byte {
	return unsafe.Slice(p.at(int(p.start)+wire.VNetLen), p.train.Length)
}
