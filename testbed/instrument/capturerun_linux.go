package instrument

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul/wire"
	"wirelab/results"
)

// captureRun is a started Capture. Its thread owns everything until done.
type captureRun struct {
	config  Capture
	target  Target
	devices []captureDevice
	rings   []*ring
	file    *os.File
	writer  *wire.PcapWriter
	cancel  context.CancelFunc
	done    chan struct{}

	started  int64 // ns since 1970
	captured []uint64
	full     bool // max_size was reached
	cpu      int64
	err      error
}

// startCapture opens a ring on every device and the file, and begins.
func startCapture(ctx context.Context, c Capture, t Target, devices []captureDevice) (Running, error) {
	m := &captureRun{config: c, target: t, devices: devices, done: make(chan struct{}), captured: make([]uint64, len(devices)), started: time.Now().UnixNano()}
	if err := m.open(); err != nil {
		return nil, errors.Join(err, m.close())
	}
	ctx, m.cancel = context.WithCancel(ctx)
	go m.run(ctx)
	return m, nil
}

func (m *captureRun) open() error {
	var described []wire.PcapInterface
	for _, d := range m.devices {
		ns, ok := m.target.Nodes[d.Node]
		if !ok {
			return fmt.Errorf("capture at %s:%s: the node has no namespace", d.Node, d.Name)
		}
		r, err := openRing(ns, d.Device, int(m.config.Snaplen), int(m.config.Ring))
		if err != nil {
			return err
		}
		m.rings = append(m.rings, r)
		described = append(described, wire.PcapInterface{
			Name: d.Node + ":" + d.Name, Description: "link " + d.link + ", facing " + d.Facing,
			LinkType: wire.LinkTypeEthernet, SnapLen: uint32(m.config.Snaplen),
		})
	}
	var err error
	if m.file, err = os.Create(filepath.Join(m.target.Dir, m.target.Name+".pcapng")); err != nil {
		return fmt.Errorf("create the capture file: %w", err)
	}
	m.writer, err = wire.NewPcapWriter(m.file, "wirelab", described)
	return err
}

// close gives everything back; the file is on disk afterwards.
func (m *captureRun) close() error {
	var errs []error
	for _, r := range m.rings {
		errs = append(errs, r.close())
	}
	if m.file != nil {
		errs = append(errs, m.file.Sync(), m.file.Close())
	}
	return errors.Join(errs...)
}

// run moves packets from the rings to the file until it is told to stop, and
// then what the kernel still holds back.
func (m *captureRun) run(ctx context.Context) {
	defer close(m.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	clk := systemClock()
	begin := clk.threadCPU()
	defer func() { m.cpu = clk.threadCPU() - begin }()

	polls := make([]unix.PollFd, len(m.rings))
	for i, r := range m.rings {
		polls[i] = unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN}
	}
	for ctx.Err() == nil && m.err == nil {
		m.wait(polls, 2*retireAfterMS)
		m.err = m.drain()
	}
	if m.err != nil {
		return
	}
	m.err = m.refuse()
	// A block that is not full is handed over within retireAfterMS.
	for end := clk.now() + 3*retireAfterMS*1e6; m.err == nil && clk.now() < end; {
		m.wait(polls, retireAfterMS)
		m.err = m.drain()
	}
}

// wait blocks until a ring has a block, for at most the time in ms.
func (m *captureRun) wait(polls []unix.PollFd, ms int) {
	// An interrupted or failed poll costs one round.
	_, _ = unix.Poll(polls, ms)
	for _, p := range polls {
		if p.Revents&unix.POLLERR != 0 {
			// The device went down. Reading the error clears it, which would
			// end every wait at once; should the device come up, packets do.
			_, _ = unix.GetsockoptInt(int(p.Fd), unix.SOL_SOCKET, unix.SO_ERROR)
		}
	}
}

// refuse stops the kernel from putting more packets into the rings.
func (m *captureRun) refuse() error {
	for _, r := range m.rings {
		if err := r.keep(0); err != nil {
			return err
		}
	}
	return nil
}

// drain writes every packet that is handed over.
func (m *captureRun) drain() error {
	for i, r := range m.rings {
		err := r.drain(func(p *wire.PcapPacket) error {
			if m.full {
				return nil
			}
			p.Interface = i
			m.captured[i]++
			if err := m.writer.WritePacket(p); err != nil {
				return err
			}
			m.full = m.config.MaxSize > 0 && m.writer.Size() >= int64(m.config.MaxSize)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if m.full {
		return m.refuse()
	}
	return nil
}

// Stop implements [Running].
func (m *captureRun) Stop() (Result, error) {
	m.cancel()
	<-m.done
	r := Result{Values: map[string]float64{}, CPUSeconds: float64(m.cpu) / 1e9}
	err := m.err
	now := time.Now().UnixNano()
	var captured, dropped uint64
	for i, ring := range m.rings {
		seen, lost, statErr := ring.statistics()
		err = errors.Join(err, statErr)
		captured += m.captured[i]
		dropped += lost
		if err == nil {
			err = m.writer.WriteStats(i, wire.PcapStats{Start: m.started, End: now, Received: seen, Dropped: lost})
		}
		r.Records = append(r.Records, results.Record{
			Actor: m.target.Name, Role: "capture", Flow: -1, Name: "",
			Values: map[string]float64{"packets_captured_count": float64(m.captured[i]), "packets_dropped_count": float64(lost)},
			Text:   map[string]string{"node": m.devices[i].Node, "device": m.devices[i].Name, "link": m.devices[i].link, "interface": strconv.Itoa(i)},
		})
	}
	if err == nil {
		err = m.writer.Flush()
	}
	if err = errors.Join(err, m.close()); err != nil {
		return r, fmt.Errorf("capture %s: %w", m.file.Name(), err)
	}
	r.Values["packets_captured_count"] = float64(captured)
	r.Values["packets_dropped_count"] = float64(dropped)
	r.Values["file_size_bytes"] = float64(m.writer.Size())
	m.notes(&r, dropped)
	return r, nil
}

// notes says what the file does not hold.
func (m *captureRun) notes(r *Result, dropped uint64) {
	if dropped > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("capture %s lost %d packets: set a larger ring or a smaller snaplen", m.target.Name, dropped))
	}
	if m.full {
		r.Notes = append(r.Notes, fmt.Sprintf("capture %s stopped when its file had max_size (%s)", m.target.Name, m.config.MaxSize))
	}
}
