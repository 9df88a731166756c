package workloads

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

const (
	// flushSize bounds what waits in a stream; flushEvery bounds for how long.
	flushSize  = 32 << 10
	flushEvery = 50 * time.Millisecond
)

// stream writes an actor's messages, many a system call.
type stream struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
	err error // of the first write that did not succeed; later ones are not tried
}

func newStream(w io.Writer) *stream {
	return &stream{w: w, buf: make([]byte, 0, flushSize+4096)}
}

// run flushes regularly until stop is closed.
func (s *stream) run(stop <-chan struct{}) {
	t := time.NewTicker(flushEvery)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			s.flush()
		}
	}
}

func (s *stream) sample(tNS int64, flow int32, fields []Field) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = appendSample(s.buf, tNS, flow, fields)
	if len(s.buf) >= flushSize {
		s.flushLocked()
	}
}

func (s *stream) message(m *message) {
	line, err := json.Marshal(m)
	if err != nil { // a value that is no finite number is null already
		line = []byte(`{"type":"error","message":"a message could not be encoded"}`)
	}
	s.line(line)
}

// line writes a message as it is.
func (s *stream) line(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(append(s.buf, line...), '\n')
	if len(s.buf) >= flushSize {
		s.flushLocked()
	}
}

func (s *stream) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushLocked()
}

func (s *stream) flushLocked() {
	if len(s.buf) > 0 && s.err == nil {
		_, s.err = s.w.Write(s.buf)
	}
	s.buf = s.buf[:0]
}
