package software_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/emul/unit"
)

// send pushes n bytes from one end to the other and closes; it returns what
// arrived, compared byte by byte.
func transfer(t *testing.T, from, to *net.TCPConn, n int) {
	t.Helper()
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i * i >> 3)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := from.Write(data)
		failed <- errors.Join(err, from.CloseWrite())
	}()
	check(t, to.SetReadDeadline(time.Now().Add(2*time.Minute)))
	got, err := io.ReadAll(to)
	check(t, err)
	check(t, <-failed)
	if !bytes.Equal(got, data) {
		t.Errorf("%d bytes arrived of %d, or other ones", len(got), n)
	}
}

// conserved polls until all that came in is accounted for.
func conserved(t *testing.T, l *lab) emul.LinkCounters {
	t.Helper()
	var c emul.LinkCounters
	eventually(t, "all packets to leave the link", func() bool {
		c = l.counters(t)
		ok := true
		for _, d := range []emul.DirectionCounters{c.Forward, c.Reverse} {
			ok = ok && d.PacketsIn == d.PacketsOut+d.QueueDrops+d.LossDrops+d.OverloadDrops
		}
		return ok
	})
	return c
}

// Pitfall 1: a train is not one packet. A queue of 100 packets at 100 Mbit/s
// holds a packet for at most 100 transmissions and one, whatever trains TCP
// sends; the event log shows each packet's wait.
func TestTrainsAreNotOnePacket(t *testing.T) {
	l := newLab(t, 1500)
	c := l.cable(emul.Impairment{Rate: 100e6, Delay: 10 * time.Millisecond, Queue: unit.Limit{Packets: 100}},
		emul.Impairment{Delay: 10 * time.Millisecond})
	c.EventLog = filepath.Join(t.TempDir(), "events.csv")
	l.join(t, c)
	check(t, l.session.Arm())
	from, to := l.tcp(t, false, "cubic")
	transfer(t, from, to, 20<<20)
	got := conserved(t, l)
	check(t, l.session.Close())
	const transmission = 121120 // ns of 1514 bytes
	var worst int64
	trains := 0
	var last event
	enqueued := map[int64]int64{}
	for _, e := range readEvents(t, c.EventLog) {
		if e.direction != "forward" {
			continue
		}
		switch e.what {
		case "enqueue":
			enqueued[e.sequence] = e.time
			if e.time == last.time && e.length > 1000 {
				trains++ // two full packets at one instant are of one train
			}
			last = e
		case "dequeue":
			worst = max(worst, e.time-enqueued[e.sequence])
		}
	}
	if worst > 100*transmission {
		t.Errorf("a packet waited for %d ns, want at most 100 transmissions of %d", worst, transmission)
	}
	if worst < 90*transmission || got.Forward.QueueDrops == 0 {
		t.Errorf("the longest wait is %d ns with %d drops: the queue never filled", worst, got.Forward.QueueDrops)
	}
	if trains == 0 {
		t.Error("there was no train: the test shows nothing")
	}
	if got.Forward.LossDrops+got.Forward.OverloadDrops+got.Reverse.QueueDrops+got.Reverse.OverloadDrops != 0 {
		t.Errorf("other drops than the queue's: %+v", got)
	}
	if frames := got.Forward.BytesOut / got.Forward.PacketsOut; frames > 1514 {
		t.Errorf("%d bytes per packet: trains were counted", frames)
	}
}

// Pitfall 2: packets of one flow keep their order while their sender changes
// cores.
func TestOrderIsKept(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two cores to move between")
	}
	l := newLab(t, 1500)
	l.join(t, l.cable(emul.Impairment{Delay: time.Millisecond, Jitter: time.Millisecond}, emul.Impairment{}))
	from, to := l.a.udp(t, false), l.b.udp(t, false)
	const n = 20000
	go func() {
		runtime.LockOSThread() // never unlocked: the affinity goes with the thread
		b := make([]byte, 100)
		for i := range n {
			if i%50 == 0 {
				var set unix.CPUSet
				set.Set(i / 50 % 2)
				_ = unix.SchedSetaffinity(0, &set)
			}
			binary.BigEndian.PutUint32(b, uint32(i))
			_, _ = from.WriteTo(b, addrOf(to))
			if i%200 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}()
	b := make([]byte, 200)
	for want := range uint32(n) {
		check(t, to.SetReadDeadline(time.Now().Add(20*time.Second)))
		if _, _, err := to.ReadFrom(b); err != nil {
			t.Fatalf("waiting for datagram %d: %v", want, err)
		}
		if got := binary.BigEndian.Uint32(b); got != want {
			t.Fatalf("datagram %d arrives in place of %d", got, want)
		}
	}
}

// Pitfall 3: what the socket cannot hold is the emulator's fault, not the
// link's, and all the rest arrives.
func TestOverloadIsNoLoss(t *testing.T) {
	l := newLab(t, 1500)
	l.join(t, l.cable(emul.Impairment{}, emul.Impairment{}))
	check(t, l.session.Arm())
	flood := func(n int) {
		from, to := l.a.udp(t, false), l.b.udp(t, false)
		b := make([]byte, 50)
		for range n {
			_, _ = from.WriteTo(b, addrOf(to))
		}
	}
	process, err := os.FindProcess(l.session.PID())
	check(t, err)
	check(t, process.Signal(unix.SIGSTOP))
	flood(10000)
	check(t, process.Signal(unix.SIGCONT))
	eventually(t, "packets of the pause", func() bool { return l.counters(t).Forward.PacketsOut >= 10000 })
	if c := l.counters(t); c.Forward.OverloadDrops != 0 {
		t.Errorf("a short pause lost packets: %+v", c.Forward)
	}
	const many = 250000 // more than 64 MB hold, even of the smallest
	check(t, process.Signal(unix.SIGSTOP))
	flood(many)
	check(t, process.Signal(unix.SIGCONT))
	var c emul.LinkCounters
	eventually(t, "packets of the long pause", func() bool {
		c = l.counters(t)
		return c.Forward.PacketsIn+c.Forward.OverloadDrops >= many+10000
	})
	if c.Forward.OverloadDrops == 0 || c.Forward.QueueDrops+c.Forward.LossDrops != 0 {
		t.Errorf("%+v", c.Forward)
	}
}

// Pitfall 4: a packet that the kernel refuses is a counted loss, not the end.
func TestRefusedPacketsAreCounted(t *testing.T) {
	l := newLab(t, 4000)
	wb, err := l.wire.netlink.LinkByName("wb")
	check(t, err)
	check(t, l.wire.netlink.LinkSetMTU(wb, 1500)) // the far side cannot send long ones
	l.join(t, l.cable(emul.Impairment{}, emul.Impairment{}))
	check(t, l.session.Arm())
	from, to := l.a.udp(t, false), l.b.udp(t, false)
	for range 7 {
		_, err := from.WriteTo(make([]byte, 3000), addrOf(to))
		check(t, err)
		_, err = from.WriteTo([]byte("short"), addrOf(to))
		check(t, err)
	}
	for range 7 {
		check(t, to.SetReadDeadline(time.Now().Add(20*time.Second)))
		b := make([]byte, 4000)
		if n, _, err := to.ReadFrom(b); err != nil || n != 5 {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	if c := conserved(t, l); c.Forward.OverloadDrops != 7 {
		t.Errorf("%+v", c.Forward)
	}
}

// Pitfall 4: trains inside tunnels do not fit the virtio header; with the
// offloads of NodeFeaturesOff switched off at the nodes there are none.
func TestTunnel(t *testing.T) {
	l := newLab(t, 1500)
	inner := [2]node{}
	for i, n := range []node{l.a, l.b} {
		featuresOff(t, n.space, "eth0", software.NodeFeaturesOff)
		eth0, err := n.netlink.LinkByName("eth0")
		check(t, err)
		peer := []node{l.b, l.a}[i]
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = "tunnel", 1450
		err = n.netlink.LinkAdd(&netlink.Vxlan{LinkAttrs: attrs, VxlanId: 1, VtepDevIndex: eth0.Attrs().Index,
			SrcAddr: n.v4.AsSlice(), Group: peer.v4.AsSlice(), Port: 4789, Learning: true})
		if errors.Is(err, unix.EOPNOTSUPP) {
			t.Skip("the kernel has no vxlan")
		}
		check(t, err)
		check(t, n.up("tunnel"))
		inner[i] = node{space: n.space, v4: address(t, n.space, "tunnel", fmt.Sprintf("10.9.0.%d/24", i+1))}
	}
	l.join(t, l.cable(emul.Impairment{Rate: 1e9, Queue: unit.Limit{Packets: 1000}}, emul.Impairment{}))
	check(t, l.session.Arm())
	from, to := connect(t, inner[0], inner[1], false, "cubic")
	transfer(t, from, to, 10<<20)
	if c := conserved(t, l); c.Forward.OverloadDrops != 0 {
		t.Errorf("%+v", c.Forward)
	}
}

// Pitfall 5: a VLAN tag survives, with and without a train behind it.
func TestVLANTagSurvives(t *testing.T) {
	l := newLab(t, 1500)
	l.join(t, l.cable(emul.Impairment{Rate: 1e9, Queue: unit.Limit{Packets: 1000}}, emul.Impairment{}))
	check(t, l.session.Arm())
	out := rawSocket(t, l.a.space)
	in := rawSocket(t, l.b.space)
	check(t, unix.SetsockoptInt(in, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1))
	frame := append(append(append([]byte{}, l.b.mac...), l.a.mac...), 0x81, 0x00, 0x20, 0x64, 0x88, 0xb5)
	frame = append(frame, []byte("tagged")...)
	frame = append(frame, make([]byte, 60)...)
	check(t, sendRaw(out, frame))
	tci, rest := receiveTagged(t, in, 0x88b5)
	if tci != 0x2064 || !bytes.HasPrefix(rest[14:], []byte("tagged")) {
		t.Errorf("tag %04x, frame % x", tci, rest)
	}
	// A tagged train, split by the rate: each part has its tag.
	const payload = 20000
	check(t, unix.SetsockoptInt(out, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1))
	check(t, sendRaw(out, taggedTrain(l, payload)))
	for got := 0; got < payload; {
		tci, rest := receiveTagged(t, in, 0x0800)
		if tci != 0x2064 {
			t.Fatalf("a part has tag %04x", tci)
		}
		got += len(rest) - 54
	}
	if c := l.counters(t); c.Forward.OverloadDrops != 0 {
		t.Errorf("%+v", c.Forward)
	}
}

// Pitfall 6: checksums are right after trains were split. The far node passes
// packets on over a device without offloads, where the kernel segments trains
// and completes each checksum from the seed we left; a third node verifies it.
func TestChecksums(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("v6=%v", v6), func(t *testing.T) {
			l := newLab(t, 1500)
			far := behind(t, l)
			imp := emul.Impairment{Rate: 300e6, Delay: 2 * time.Millisecond, Loss: 0.003, Queue: unit.Limit{Packets: 200}}
			l.join(t, l.cable(imp, emul.Impairment{}))
			check(t, l.session.Arm())
			from, to := connect(t, l.a, far, v6, "cubic")
			transfer(t, from, to, 8<<20)
			udpTrains(t, l.a, far, v6)
			c := conserved(t, l)
			if c.Forward.LossDrops == 0 || c.Forward.OverloadDrops+c.Reverse.OverloadDrops != 0 {
				t.Errorf("%+v", c)
			}
			if bad := checksumErrors(t, far.space) + checksumErrors(t, l.b.space); bad != 0 {
				t.Errorf("%d packets arrived with a wrong checksum", bad)
			}
		})
	}
}

// Pitfall 6 and UDP segmentation offload: datagrams of a train arrive whole
// and one by one.
func udpTrains(t *testing.T, a, b node, v6 bool) {
	t.Helper()
	from, to := a.udp(t, v6), b.udp(t, v6)
	raw, err := from.SyscallConn()
	check(t, err)
	const size, count = 1200, 40
	check(t, raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, size) }))
	check(t, err)
	arrived := map[uint32]bool{}
	for train := range 20 {
		b := make([]byte, size*count-100)
		for i := range count {
			binary.BigEndian.PutUint32(b[i*size:], uint32(train*count+i))
		}
		_, err := from.WriteTo(b, addrOf(to))
		check(t, err)
		d := make([]byte, 2*size)
		for {
			_ = to.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			n, _, err := to.ReadFrom(d)
			if err != nil {
				break
			}
			i := binary.BigEndian.Uint32(d)
			if want := size - 100*int(i%count/(count-1)); n != want || arrived[i] {
				t.Errorf("datagram %d: %d bytes, want %d once", i, n, want)
			}
			arrived[i] = true
			if i%count == count-1 {
				break
			}
		}
	}
	if n := len(arrived); n < 20*count*9/10 {
		t.Errorf("%d of %d datagrams arrived", n, 20*count)
	}
}

// Pitfall 7: a device that is down loses packets and nothing else.
func TestDeviceDownAndUp(t *testing.T) {
	l := newLab(t, 1500)
	l.join(t, l.cable(emul.Impairment{}, emul.Impairment{}))
	from, to := l.a.udp(t, false), l.b.udp(t, false)
	wb, err := l.wire.netlink.LinkByName("wb")
	check(t, err)
	arrives := func() bool {
		_, _ = from.WriteTo([]byte("x"), addrOf(to))
		_ = to.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		_, _, err := to.ReadFrom(make([]byte, 10))
		return err == nil
	}
	eventually(t, "the first datagram", arrives)
	check(t, l.wire.netlink.LinkSetDown(wb))
	if arrives() {
		t.Error("a device that is down carries packets")
	}
	eventually(t, "the loss to be counted", func() bool { return l.counters(t).Forward.OverloadDrops > 0 })
	check(t, l.wire.netlink.LinkSetUp(wb))
	eventually(t, "a datagram after the device is up again", arrives)
}

// Pitfall 8: address resolution crosses a link that loses everything else.
func TestNeighboursAreExemptFromLoss(t *testing.T) {
	l := newLab(t, 1500)
	forget(t, l.a)
	forget(t, l.b)
	l.join(t, l.cable(emul.Impairment{Loss: 1}, emul.Impairment{Loss: 1}))
	check(t, l.session.Arm())
	for _, v6 := range []bool{false, true} {
		from, to := l.a.udp(t, v6), l.b.udp(t, v6)
		_, _ = from.WriteTo([]byte("lost"), addrOf(to))
		eventually(t, "the neighbour to be found", func() bool { return knows(t, l.a, addrOf(to).IP) })
		_ = to.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if n, _, err := to.ReadFrom(make([]byte, 10)); err == nil {
			t.Errorf("%d bytes crossed a link that loses all", n)
		}
	}
	if c := l.counters(t); c.Forward.LossDrops == 0 {
		t.Errorf("%+v", c.Forward)
	}
}
