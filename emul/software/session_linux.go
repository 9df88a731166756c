package software

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul"
)

const (
	answerTimeout = 10 * time.Second
	quitTimeout   = 5 * time.Second
	exitTimeout   = 2 * time.Second
)

// session is the parent's side of a forwarding process.
type session struct {
	process *os.Process
	names   []string // of the cables
	ready   ready
	tail    *tail

	mu   sync.Mutex // one request at a time
	conn *net.UnixConn

	exited  chan struct{} // closed when the process has been waited for
	done    chan struct{}
	closing sync.Once
	state   sync.Mutex
	closed  bool
	inOrder bool // it ended with exit status 0
	err     error
}

var (
	_ emul.Session = (*session)(nil)
	_ emul.Sampler = (*session)(nil)
	_ emul.Updater = (*session)(nil)
)

// ended records the end of the process.
func (s *session) ended(err error) {
	s.state.Lock()
	s.inOrder = err == nil
	if !s.closed {
		status := "exit status 0"
		if err != nil {
			status = err.Error()
		}
		words := s.tail.String()
		if words == "" {
			words = "nothing"
		}
		s.err = fmt.Errorf("forwarding process ended (%s); its last words: %s", status, words)
	}
	s.state.Unlock()
	close(s.exited)
	close(s.done)
	_ = s.conn.Close() // wakes whoever waits for an answer
}

// call sends a request and returns the body of the answer.
func (s *session) call(k kind, body []byte, timeout time.Duration) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(err error) ([]byte, error) {
		// A connection closed under us means that the process ended.
		select {
		case <-s.exited:
		case <-time.After(100 * time.Millisecond):
		}
		if why := s.Err(); why != nil {
			return nil, why
		}
		return nil, fmt.Errorf("ask forwarding process: %w", err)
	}
	if err := s.conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		return fail(err)
	}
	if err := writeMessage(s.conn, k, body); err != nil {
		return fail(err)
	}
	answer, b, err := readMessage(s.conn)
	switch {
	case err != nil:
		return fail(err)
	case answer == kindError:
		return nil, errors.New(string(b))
	case answer != k:
		return nil, fmt.Errorf("ask forwarding process: asked %q, it answered %q", k, answer)
	}
	return b, nil
}

// Arm implements emul.Session.
func (s *session) Arm() error {
	_, err := s.call(kindArm, nil, answerTimeout)
	return err
}

// Counters implements emul.Session; the histograms are included.
func (s *session) Counters() (emul.Snapshot, error) { return s.snapshot(kindDetailed) }

// CountersLight implements emul.Sampler.
func (s *session) CountersLight() (emul.Snapshot, error) { return s.snapshot(kindCounters) }

func (s *session) snapshot(k kind) (emul.Snapshot, error) {
	b, err := s.call(k, nil, answerTimeout)
	if err != nil {
		return emul.Snapshot{}, err
	}
	return decodeSnapshot(b, s.names, k == kindDetailed)
}

// Update implements emul.Updater.
func (s *session) Update(link string, reverse bool, to emul.Impairment) error {
	if err := (&Backend{}).Supports(to); err != nil {
		return fmt.Errorf("change %s: %w", link, err)
	}
	u := update{Cable: slices.Index(s.names, link), Impairment: to}
	if u.Cable < 0 {
		return fmt.Errorf("change %s: there is no such link; links are %s", link, strings.Join(s.names, ", "))
	}
	if reverse {
		u.Direction = 1
	}
	body, err := json.Marshal(u)
	if err != nil {
		return err
	}
	_, err = s.call(kindUpdate, body, answerTimeout)
	return err
}

// Scheduling says what the host granted each worker.
func (s *session) Scheduling() []Scheduling { return s.ready.Workers }

// PID implements emul.Session.
func (s *session) PID() int { return s.process.Pid }

// Done implements emul.Session; Close closes it too, with a nil Err.
func (s *session) Done() <-chan struct{} { return s.done }

// Err implements emul.Session.
func (s *session) Err() error {
	s.state.Lock()
	defer s.state.Unlock()
	return s.err
}

// Close implements emul.Session: the event logs are completed, the process
// ends, by force if it must.
func (s *session) Close() error {
	var err error
	s.closing.Do(func() {
		s.state.Lock()
		s.closed = true
		died := s.err
		s.state.Unlock()
		if died != nil {
			return // told by Err
		}
		if _, err = s.call(kindQuit, nil, quitTimeout); err != nil && !s.left() {
			err = fmt.Errorf("close links: %w", err)
		} else {
			err = nil
		}
		_ = s.conn.Close() // the child ends on it
		s.kill()
	})
	return err
}

// left reports whether the process has ended in order. Asked to quit, it may
// be gone before its answer was read.
func (s *session) left() bool {
	select {
	case <-s.exited:
		s.state.Lock()
		defer s.state.Unlock()
		return s.inOrder
	case <-time.After(exitTimeout):
		return false
	}
}

// kill makes sure that the process is gone: end of the control socket, then
// TERM, then KILL.
func (s *session) kill() {
	s.state.Lock()
	s.closed = true
	s.state.Unlock()
	_ = s.conn.Close()
	for _, signal := range []os.Signal{nil, unix.SIGTERM, unix.SIGKILL} {
		if signal != nil {
			_ = s.process.Signal(signal) // it may just have ended
		}
		select {
		case <-s.exited:
			return
		case <-time.After(exitTimeout):
		}
	}
}

// tail passes on what is written and remembers the end of it.
type tail struct {
	mu   sync.Mutex
	out  io.Writer
	last []byte
}

const tailLen = 2048

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, b...)
	t.last = t.last[max(len(t.last)-tailLen, 0):]
	return t.out.Write(b)
}

// String returns the last words without surrounding space.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.last))
}
