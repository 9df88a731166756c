package software

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirelab/emul/wire"
)

// A packet lies in up to three pieces: everything has a small slot, which also
// holds its description; what does not fit goes on in a middle slot, and then
// in a big one. A socket reads into all three at once (the kernel fills them
// in order), and only the pieces used are kept. 64 KiB and their headers fit.
const (
	descLen = 128
	// A slot leaves room for a VLAN tag to be put back. The frame begins where
	// the payload after the most usual headers (Ethernet, IPv4, TCP with time
	// stamps: 66 bytes) falls on a cache line, in this slot and the next:
	// copies between unaligned lines take half as long again.
	vnetAt     = descLen + 52
	smallData  = 66 + 31*64
	smallSlot  = vnetAt + wire.VNetLen + smallData
	middleSlot = 14 << 10
	bigSlot    = 50 << 10
)

// packet is a received frame, shared by the runs of its segments that have not
// left yet. It is the start of its small slot.
type packet struct {
	self   uint32 // number of the small slot
	middle uint32 // slot numbers; none when the packet is shorter
	big    uint32
	refs   int32 // runs of segments in delay lines or being sent
	start  uint16
	small  uint16 // bytes of the frame in the small slot
	train  wire.Train
}

const none = ^uint32(0)

// slots is a pool of equal pieces of anonymous memory. Pages become real when
// first touched, and freed slots are used again first, so a pool costs what
// was in use at the worst moment.
type slots struct {
	mem    []byte
	base   unsafe.Pointer
	size   uintptr
	unused uint32 // slots from here on were never handed out
	limit  uint32
	free   []uint32
}

func newSlots(size, bytes int) (slots, error) {
	n := max(bytes/size, 256)
	mem, err := unix.Mmap(-1, 0, n*size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return slots{}, fmt.Errorf("reserve %d bytes for packets: %w", n*size, err)
	}
	return slots{mem: mem, base: unsafe.Pointer(&mem[0]), size: uintptr(size), limit: uint32(n)}, nil
}

func (s *slots) get() (uint32, bool) {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i, true
	}
	if s.unused == s.limit {
		return none, false
	}
	s.unused++
	return s.unused - 1, true
}

func (s *slots) put(i uint32) { s.free = append(s.free, i) }

func (s *slots) at(i uint32) unsafe.Pointer { return unsafe.Add(s.base, uintptr(i)*s.size) }

// used is the memory touched so far in bytes.
func (s *slots) used() int { return int(s.unused) * int(s.size) }

// arena holds the packets of one worker.
type arena struct {
	small, middle, big slots
	limit              int // bytes touched in all pools together
}

func newArena(limit int) (*arena, error) {
	a := &arena{limit: limit}
	for _, p := range []struct {
		s    *slots
		size int
	}{{&a.small, smallSlot}, {&a.middle, middleSlot}, {&a.big, bigSlot}} {
		var err error
		if *p.s, err = newSlots(p.size, limit); err != nil {
			a.close()
			return nil, err
		}
	}
	return a, nil
}

func (a *arena) close() {
	for _, s := range []*slots{&a.small, &a.middle, &a.big} {
		if s.mem != nil {
			_ = unix.Munmap(s.mem) // nothing can be done about it
		}
	}
}

// take hands out a slot unless that would exceed the limit.
func (a *arena) take(s *slots) (uint32, bool) {
	if len(s.free) == 0 && a.small.used()+a.middle.used()+a.big.used()+int(s.size) > a.limit {
		return none, false
	}
	return s.get()
}

func (a *arena) packet(i uint32) *packet { return (*packet)(a.small.at(i)) }

// release gives up one run of the packet. It returns the memory that became
// free with the last one, in bytes.
func (a *arena) release(p *packet) int {
	p.refs--
	if p.refs > 0 {
		return 0
	}
	freed := p.memory()
	if p.middle != none {
		a.middle.put(p.middle)
	}
	if p.big != none {
		a.big.put(p.big)
	}
	a.small.put(p.self)
	return freed
}

// memory is what the packet's slots take, in bytes.
func (p *packet) memory() int {
	n := smallSlot
	if p.middle != none {
		n += middleSlot
	}
	if p.big != none {
		n += bigSlot
	}
	return n
}

// vnet is the virtio header of the packet, followed by what the small slot
// holds of the frame.
func (p *packet) vnet() *byte { return (*byte)(unsafe.Add(unsafe.Pointer(p), uintptr(p.start))) }

// head is the part of the frame in the small slot; all headers lie in it.
func (p *packet) head() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(p), uintptr(p.start)+wire.VNetLen)), int(p.small))
}

// gather appends to dst where bytes from up to to of the frame lie.
func (a *arena) gather(dst []unix.Iovec, p *packet, from, to int) []unix.Iovec {
	small := int(p.small)
	if from < small {
		n := min(to, small) - from
		dst = append(dst, iovec(unsafe.Add(unsafe.Pointer(p), int(p.start)+wire.VNetLen+from), n))
		from += n
	}
	if from < to && from < small+middleSlot {
		n := min(to, small+middleSlot) - from
		dst = append(dst, iovec(unsafe.Add(a.middle.at(p.middle), from-small), n))
		from += n
	}
	if from < to {
		dst = append(dst, iovec(unsafe.Add(a.big.at(p.big), from-small-middleSlot), to-from))
	}
	return dst
}

func iovec(p unsafe.Pointer, n int) unix.Iovec {
	return unix.Iovec{Base: (*byte)(p), Len: uint64(n)}
}
