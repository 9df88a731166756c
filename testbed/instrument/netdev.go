package instrument

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"wirelab/emul"
)

// netdev reads the device counters of one node: /proc/net/dev, opened inside
// the node's namespace, keeps showing that namespace wherever it is read.
type netdev struct {
	file *os.File
	buf  []byte
	// devices are those wanted, filled by read.
	devices map[string]*devCounters
}

// devCounters are the counters of one device.
type devCounters struct {
	rxBytes, rxPackets, rxDropped uint64
	txBytes, txPackets, txDropped uint64
	seen                          bool // by the last read
}

func openNetdev(ns Namespace) (*netdev, error) {
	d := &netdev{buf: make([]byte, 4096), devices: map[string]*devCounters{}}
	err := ns.Do(func() error {
		var err error
		d.file, err = os.Open("/proc/thread-self/net/dev")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open device counters of %s: %w", ns.Path(), err)
	}
	return d, nil
}

func (d *netdev) close() error { return d.file.Close() }

// want returns where read will put a device's counters.
func (d *netdev) want(device string) *devCounters {
	c := d.devices[device]
	if c == nil {
		c = &devCounters{}
		d.devices[device] = c
	}
	return c
}

// read refreshes all wanted counters.
func (d *netdev) read() error {
	if _, err := d.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read device counters: %w", err)
	}
	n := 0
	for {
		m, err := d.file.Read(d.buf[n:])
		n += m
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read device counters: %w", err)
		}
		if n == len(d.buf) {
			d.buf = append(d.buf, make([]byte, len(d.buf))...)
		}
	}
	return d.parse(d.buf[:n])
}

// parse reads the text of /proc/net/dev: a name, a colon, 16 counters.
func (d *netdev) parse(text []byte) error {
	for _, c := range d.devices {
		c.seen = false
	}
	for line := range bytes.Lines(text) {
		name, rest, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			continue
		}
		c := d.devices[string(bytes.TrimSpace(name))]
		if c == nil {
			continue
		}
		var v [16]uint64
		if n, err := counters(rest, v[:]); err != nil || n < 12 {
			return fmt.Errorf("device counters: unexpected line %q", line)
		}
		*c = devCounters{
			rxBytes: v[0], rxPackets: v[1], rxDropped: v[3],
			txBytes: v[8], txPackets: v[9], txDropped: v[11], seen: true,
		}
	}
	return nil
}

// bareDirection joins the counters of a bare link's sending and receiving
// device. A veth drops where its peer cannot take a packet, and counts that at
// the sender.
func bareDirection(from, to devCounters) emul.DirectionCounters {
	return emul.DirectionCounters{
		PacketsIn: from.txPackets + from.txDropped, BytesIn: from.txBytes,
		PacketsOut: to.rxPackets, BytesOut: to.rxBytes,
		QueueDrops: from.txDropped + to.rxDropped,
	}
}
