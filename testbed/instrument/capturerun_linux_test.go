package instrument

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"wirelab/emul/unit"
	"wirelab/emul/wire"
)

// startedCapture starts a capture of the pair's link.
func startedCapture(t *testing.T, p *pair, edit func(*Capture)) (Target, Running) {
	t.Helper()
	target, _ := p.target(t)
	c := newCapture().(*Capture)
	c.Link = "net.wire"
	edit(c)
	running, err := c.Start(context.Background(), target)
	if err != nil {
		t.Fatal(err)
	}
	return target, running
}

// readCapture reads the file of a capture.
func readCapture(t *testing.T, target Target) (*wire.PcapReader, []wire.PcapPacket) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(target.Dir, "it.pcapng"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := wire.NewPcapReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	var out []wire.PcapPacket
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r, out
		}
		if err != nil {
			t.Fatal(err)
		}
		p.Data = bytes.Clone(p.Data)
		out = append(out, p)
	}
}

// isUDP finds the datagrams of the test.
func isUDP(p wire.PcapPacket, port int) bool {
	return len(p.Data) >= 42 && binary.BigEndian.Uint16(p.Data[12:]) == 0x0800 && p.Data[23] == unix.IPPROTO_UDP &&
		int(binary.BigEndian.Uint16(p.Data[36:])) == port
}

func TestCaptureSeesBothEndsOfALink(t *testing.T) {
	p := newPair(t)
	begin := time.Now().UnixNano()
	target, running := startedCapture(t, p, func(c *Capture) { c.Snaplen = 60 })
	from, to := p.udp(t)
	const n, size = 50, 1000
	send(t, from, to, n, size)
	r, err := running.Stop()
	if err != nil {
		t.Fatal(err)
	}
	reader, packets := readCapture(t, target)
	end := time.Now().UnixNano()
	ifs := reader.Interfaces()
	if len(ifs) != 2 || ifs[0].Name != "left:eth0" || ifs[1].Name != "right:eth0" || !strings.Contains(ifs[1].Description, "net.wire") {
		t.Fatalf("interfaces %+v", ifs)
	}
	var last [2]int64
	var seen [2]int
	for _, pkt := range packets {
		if pkt.Time < last[pkt.Interface] || pkt.Time < begin || pkt.Time > end {
			t.Fatalf("packet at %d after one at %d, between %d and %d", pkt.Time, last[pkt.Interface], begin, end)
		}
		last[pkt.Interface] = pkt.Time
		if !isUDP(pkt, to.LocalAddr().(*net.UDPAddr).Port) {
			continue
		}
		seen[pkt.Interface]++
		direction := []wire.PcapFlags{wire.PcapOutbound, wire.PcapInbound}[pkt.Interface]
		if pkt.Length != size+42 || len(pkt.Data) != 60 || pkt.Flags&3 != direction {
			t.Fatalf("packet of %d, kept %d, flags %#x at interface %d", pkt.Length, len(pkt.Data), pkt.Flags, pkt.Interface)
		}
	}
	if seen[1] < n || seen[0] < seen[1] {
		t.Errorf("%d datagrams left and %d arrived, want at least %d", seen[0], seen[1], n)
	}
	want(t, r.Values, "packets_captured_count", float64(len(packets)))
	want(t, r.Values, "packets_dropped_count", 0)
	for i, s := range ifs {
		if s.Stats == nil || s.Stats.Received < uint64(seen[i]) || s.Stats.Dropped != 0 || s.Stats.Start < begin || s.Stats.End > end {
			t.Errorf("statistics of interface %d: %+v", i, s.Stats)
		}
	}
	if info, err := os.Stat(filepath.Join(target.Dir, "it.pcapng")); err != nil || float64(info.Size()) != r.Values["file_size_bytes"] {
		t.Errorf("size %v, error %v; want %g", info, err, r.Values["file_size_bytes"])
	}
	readByWireshark(t, filepath.Join(target.Dir, "it.pcapng"), len(packets))
}

// A device that a program takes down neither ends a capture nor keeps its
// thread busy.
func TestCaptureOutlivesADeviceThatGoesDown(t *testing.T) {
	p := newPair(t)
	_, running := startedCapture(t, p, func(*Capture) {})
	h, err := netlink.NewHandleAt(p.right.Handle())
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.LinkByName("eth0")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.LinkSetDown(l); err != nil {
		t.Fatal(err)
	}
	m := running.(*captureRun)
	polls := []unix.PollFd{{Fd: int32(m.rings[1].fd), Events: unix.POLLIN}}
	poll(t, "the error of the device to be cleared", func() bool {
		n, err := unix.Poll(polls, 0)
		return err == nil && (n == 0 || polls[0].Revents&unix.POLLERR == 0)
	})
	if err := h.LinkSetUp(l); err != nil {
		t.Fatal(err)
	}
	from, to := p.udp(t)
	send(t, from, to, 5, 100)
	if _, err := running.Stop(); err != nil {
		t.Error(err)
	}
}

// readByWireshark lets another reader of the format count the packets.
func readByWireshark(t *testing.T, file string, packets int) {
	t.Helper()
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		return
	}
	out, err := exec.Command(tshark, "-r", file, "-T", "fields", "-e", "frame.interface_name").Output()
	if err != nil {
		t.Fatalf("tshark: %v", err)
	}
	if n := strings.Count(string(out), ":eth0\n"); n != packets {
		t.Errorf("tshark finds %d packets, want %d", n, packets)
	}
}

func TestCaptureCountsItsOwnLosses(t *testing.T) {
	p := newPair(t)
	r, err := openRing(p.right, Device{Node: "right", Name: "eth0"}, 1500, captureMinRing)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.close() }()
	from, _ := p.udp(t)
	b := make([]byte, 1400)
	var seen, dropped uint64
	poll(t, "the ring to overflow", func() bool {
		for range 500 {
			_, _ = from.Write(b)
		}
		s, d, err := r.statistics()
		if err != nil {
			t.Fatal(err)
		}
		seen, dropped = seen+s, dropped+d
		return dropped > 0
	})
	kept := uint64(0)
	for r.ready() {
		if err := r.drain(func(*wire.PcapPacket) error { kept++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	s, d, err := r.statistics()
	if err != nil {
		t.Fatal(err)
	}
	seen, dropped = seen+s, dropped+d
	if kept == 0 || kept+dropped > seen {
		t.Errorf("kept %d, dropped %d of %d", kept, dropped, seen)
	}
}

func TestCaptureStopsAtItsSize(t *testing.T) {
	p := newPair(t)
	_, running := startedCapture(t, p, func(c *Capture) { c.MaxSize = 2 * unit.Size(1<<10) })
	from, to := p.udp(t)
	send(t, from, to, 100, 1000)
	r, err := running.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if size := r.Values["file_size_bytes"]; size < 2048 || size > 4096 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "max_size") {
		t.Errorf("size %g, notes %q", size, r.Notes)
	}
}

func TestCaptureReportsADeviceThatIsNotThere(t *testing.T) {
	p := newPair(t)
	target, _ := p.target(t)
	target.Devices["net.wire"] = [2]Device{{Node: "left", Name: "eth7"}}
	c := newCapture().(*Capture)
	c.On = "left"
	if _, err := c.Start(context.Background(), target); err == nil || !strings.Contains(err.Error(), "left:eth7") {
		t.Errorf("error %v does not name the device", err)
	}
}

func TestRingPutsTheVLANTagBack(t *testing.T) {
	r := &ring{snap: 64}
	pkt := wire.PcapPacket{Data: append([]byte("ddddddssssss"), 0x08, 0x00, 0x45), Length: 1500}
	r.retag(&pkt, 5, 0x9999, unix.TP_STATUS_VLAN_VALID)
	if pkt.Length != 1504 || !bytes.Equal(pkt.Data, append([]byte("ddddddssssss"), 0x81, 0, 0, 5, 0x08, 0x00, 0x45)) {
		t.Errorf("packet %+v", pkt)
	}
}

func TestBareLinkIsMeasured(t *testing.T) {
	p := newPair(t)
	target, series := p.target(t)
	m, err := StartLinkMeter(context.Background(), target, LinkMeterOptions{Interval: 2 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	poll(t, "the first reading", func() bool { return len(series.of("net.wire.forward", "throughput_bps")) > 0 })
	from, to := p.udp(t)
	const n, size = 20, 1000
	send(t, from, to, n, size)
	r, err := m.Stop()
	if err != nil {
		t.Fatal(err)
	}
	v := r.Links["net.wire"]
	if v["packets_out_count"] < n || v["bytes_out_bytes"] < n*size || v["throughput_bps"] <= 0 {
		t.Errorf("forward %v", v)
	}
	absent(t, v, "utilization_ratio", "backlog_mean_bytes", "loss_ratio", "departure_error_p99_s")
	if _, ok := r.Links["net.wire.reverse"]; !ok {
		t.Errorf("links %v", r.Links)
	}
	defined := map[string]bool{}
	for _, d := range BareLinkMetrics() {
		defined[d.Name] = true
	}
	for name := range v {
		if !defined[name] {
			t.Errorf("%s is not defined by BareLinkMetrics", name)
		}
	}
}
