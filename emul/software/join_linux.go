package software

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul"
)

// Join implements emul.Backend: it starts one child process for all cables and
// returns when it forwards.
func (b *Backend) Join(ctx context.Context, cables []emul.Cable) (emul.Session, error) {
	if err := b.check(cables); err != nil {
		return nil, err
	}
	s, err := b.start()
	if err != nil {
		return nil, err
	}
	if err := s.handshake(ctx, b.opt, cables); err != nil {
		s.kill()
		if words := s.tail.String(); words != "" {
			err = fmt.Errorf("%w; it said: %s", err, words)
		}
		return nil, fmt.Errorf("start forwarding process: %w", err)
	}
	return s, nil
}

func (b *Backend) check(cables []emul.Cable) error {
	names := map[string]bool{}
	for _, c := range cables {
		if names[c.Name] {
			return fmt.Errorf("join cables: two are called %q", c.Name)
		}
		names[c.Name] = true
		for _, i := range []emul.Impairment{c.Forward, c.Reverse} {
			if err := b.Supports(i); err != nil {
				return fmt.Errorf("join %s: %w", c.Name, err)
			}
		}
	}
	return nil
}

// start runs the child with one end of the control socket as descriptor 3.
func (b *Backend) start() (*session, error) {
	binary := b.opt.Binary
	if binary == "" {
		binary = "/proc/self/exe"
	}
	parent, child, err := socketPair()
	if err != nil {
		return nil, err
	}
	s := &session{conn: parent, exited: make(chan struct{}), done: make(chan struct{}), tail: &tail{out: b.opt.Log}}
	cmd := exec.Command(binary, b.opt.Args...)
	cmd.ExtraFiles = []*os.File{child}
	cmd.Stdout, cmd.Stderr = s.tail, s.tail
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		// A session of its own: an interrupt from the terminal is for the
		// parent to handle, and the scheduler's autogroup is the child's alone
		// (see favour).
		Setsid: true,
	}
	started := make(chan error)
	go func() {
		// The death signal is bound to the thread that forks: keep it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			s.ended(cmd.Wait())
		}
	}()
	err = <-started
	_ = child.Close() // the child has its own
	if err != nil {
		_ = parent.Close()
		return nil, fmt.Errorf("start forwarding process %s: %w", binary, err)
	}
	s.process = cmd.Process
	return s, nil
}

func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create control socket: %w", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "control")
	theirs := os.NewFile(uintptr(fds[1]), "control")
	conn, err := net.FileConn(ours)
	_ = ours.Close() // FileConn has duplicated it
	if err != nil {
		_ = theirs.Close()
		return nil, nil, fmt.Errorf("create control socket: %w", err)
	}
	return conn.(*net.UnixConn), theirs, nil
}

// handshake sends the cables and their sockets and waits for the child.
func (s *session) handshake(ctx context.Context, o Options, cables []emul.Cable) error {
	deadline := time.Now().Add(o.ReadyTimeout)
	if err := s.conn.SetDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err := s.introduce(o, cables)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it was not ready within %v: %w", o.ReadyTimeout, err)
	case err != nil:
		return err
	}
	return s.conn.SetDeadline(time.Time{})
}

func (s *session) introduce(o Options, cables []emul.Cable) error {
	sp := newSpec(o, cables)
	for _, c := range cables {
		s.names = append(s.names, c.Name)
	}
	if err := writeJSON(s.conn, kindSpec, sp); err != nil {
		return fmt.Errorf("send cables: %w", err)
	}
	ports := make([]emul.Port, 0, 2*len(cables))
	for _, c := range cables {
		ports = append(ports, c.A, c.B)
	}
	for len(ports) > 0 {
		n := min(len(ports), fdsPerMessage/socketsPerPort)
		if err := sendPorts(s.conn, ports[:n]); err != nil {
			return err
		}
		ports = ports[n:]
	}
	k, body, err := readMessage(s.conn)
	switch {
	case err != nil:
		return fmt.Errorf("wait until it forwards: %w", err)
	case k == kindError:
		return errors.New(string(body))
	case k != kindReady:
		return fmt.Errorf("wait until it forwards: it answered %q", k)
	}
	return json.Unmarshal(body, &s.ready)
}

func newSpec(o Options, cables []emul.Cable) spec {
	sp := spec{Workers: o.Workers, Cores: o.Cores, QuantumNS: int64(o.Quantum), Memory: o.Memory}
	if sp.Workers <= 0 {
		sp.Workers = DefaultWorkers()
	}
	sp.Workers = max(min(sp.Workers, len(cables)), 1)
	if len(sp.Cores) == 0 {
		sp.Cores = defaultCores(sp.Workers)
	}
	if sp.Memory <= 0 {
		sp.Memory = defaultMemory()
	}
	for _, c := range cables {
		sp.Cables = append(sp.Cables, cable{
			Name: c.Name, MTU: c.MTU, Forward: c.Forward, Reverse: c.Reverse,
			Seed: c.Seed, Precise: c.Mode == emul.ModePrecise, EventLog: c.EventLog,
		})
	}
	return sp
}

// defaultMemory is a quarter of the machine's, in bytes.
func defaultMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 1 << 30
	}
	return int64(info.Totalram) * int64(info.Unit) / 4
}

// sendPorts opens the sockets, passes them on, and closes our copies, so that
// any number of links needs few descriptors here.
func sendPorts(conn *net.UnixConn, ports []emul.Port) error {
	files := make([]*os.File, 0, len(ports))
	defer func() {
		for _, f := range files {
			_ = f.Close() // the child has it, or nobody
		}
	}()
	fds := make([]int, 0, len(ports))
	for _, p := range ports {
		for _, r := range [socketsPerPort]role{receiving, sending} {
			f, err := openPort(p, r)
			if err != nil {
				return err
			}
			files = append(files, f)
			fds = append(fds, int(f.Fd()))
		}
	}
	if _, _, err := conn.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil); err != nil {
		return fmt.Errorf("hand over sockets: %w", err)
	}
	return nil
}
