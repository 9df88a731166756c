package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"wirelab/workloads"
)

// relay runs a program that speaks protocol 1 itself: it gets the same stdin as
// an actor of ours, and its messages are handed on as they are.
func (r *runner) relay(ctx context.Context) error {
	path, err := r.c.program()
	if err != nil {
		return fmt.Errorf("%w: %w", workloads.ErrUnsupported, err)
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, inR.Close(), inW.Close())
	}
	cmd := &exec.Cmd{Path: path, Args: r.c.Argv, Dir: r.workingDir(), Env: os.Environ(), Stdin: inR, ExtraFiles: []*os.File{outW}}
	for name, value := range r.variables(0) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	p, err := r.launch(cmd)
	inR.Close()
	outW.Close()
	if err != nil {
		return errors.Join(err, inW.Close(), outR.Close())
	}
	defer p.end(0)
	said := make(chan struct{})
	go func() {
		defer close(said)
		r.passOn(outR)
	}()
	tell := teller{w: inW}
	go r.direct(ctx, &tell)
	select {
	case <-p.waited:
	case <-ctx.Done():
		// Not waited for: a program that does not read would hold us up.
		go tell.say(map[string]any{"type": "stop"})
		if p.end(actorGrace) {
			err = fmt.Errorf("it did not end within %v of the stop message", actorGrace)
		}
	}
	p.end(0)
	select {
	case <-said:
	case <-time.After(drainFor): // somebody escaped with the other end
		err = errors.Join(err, outR.SetReadDeadline(p.began))
		<-said
	}
	return errors.Join(err, r.verdict(p, err != nil), tell.close(), outR.Close())
}

// actorGrace is how long a program may take after a stop message: less than
// what the orchestrator gives us.
const actorGrace = 4 * time.Second

// passOn hands on the program's messages, line by line.
func (r *runner) passOn(from io.Reader) {
	lines := bufio.NewReaderSize(from, 256<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if n := len(line); n > 0 && line[n-1] == '\n' {
			r.env.Relay(line[:n-1])
		}
		if err != nil {
			return
		}
	}
}

// direct hands on what the orchestrator says.
func (r *runner) direct(ctx context.Context, tell *teller) {
	spec := r.env.Spec
	spec.Config = json.RawMessage("{}")
	tell.say(struct {
		Type     string `json:"type"`
		Protocol int    `json:"protocol"`
		workloads.Spec
	}{"spec", workloads.Protocol, spec})
	t0, err := r.env.WaitStart(ctx)
	if err != nil {
		return
	}
	tell.say(map[string]any{"type": "start", "t0_ns": t0})
	if !spec.After {
		return
	}
	if at, err := r.env.WaitGo(ctx); err == nil {
		tell.say(map[string]any{"type": "go", "t0_ns": at})
	}
}

// teller writes messages to the program's stdin.
type teller struct {
	mu sync.Mutex
	w  io.WriteCloser
}

// say ignores a program that does not listen: how it ends says more.
func (t *teller) say(m any) {
	line, err := json.Marshal(m)
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = t.w.Write(append(line, '\n'))
}

func (t *teller) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.w.Close()
}
