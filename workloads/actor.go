package workloads

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"wirelab/results"
)

// The exit statuses of an actor process.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnsupported = 3
)

// orphanGrace is how long an actor may clean up after the orchestrator's death.
const orphanGrace = 3 * time.Second

// reportFD is the descriptor of an actor's messages.
const reportFD = 3

// RunActor plays a role of a kind in this process, speaking protocol 1 on
// stdin and descriptor 3, and returns the exit status.
//
// The process needs no parent-death signal: that signal follows the thread
// that forked, which need not live as long as the orchestrator. The end of
// stdin tells the same, reliably.
func RunActor(ctx context.Context, kinds []Kind, kind, role string) int {
	closeOnExec(reportFD)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	defer signal.Stop(term)
	a := &actorProcess{kinds: kinds, kind: kind, role: role, term: term, cancel: cancel}
	return a.run(ctx, os.Stdin, os.NewFile(reportFD, "report"))
}

// actorProcess is this process in its life as an actor.
type actorProcess struct {
	kinds      []Kind
	kind, role string
	term       <-chan os.Signal
	cancel     context.CancelCauseFunc // of the context that run is given
}

func (a *actorProcess) run(ctx context.Context, in io.Reader, out io.Writer) int {
	s := newStream(out)
	stop := make(chan struct{})
	defer close(stop)
	defer s.flush()
	go s.run(stop)

	actor, err := findActor(a.kinds, a.kind, a.role)
	if err != nil {
		return s.finish(err, exitUsage)
	}
	lines := bufio.NewReaderSize(in, 1<<16)
	spec, err := readSpec(lines)
	if err != nil {
		return s.finish(err, exitUsage)
	}
	if err := pin(spec.Cores); err != nil {
		return s.finish(err, exitFailed)
	}
	if len(spec.Cores) > 0 {
		runtime.GOMAXPROCS(len(spec.Cores))
	}
	env := newEnv(spec, s)
	go env.obey(lines, a.cancel)
	go func() {
		select {
		case <-a.term:
			env.hurry()
			a.cancel(ErrStopped)
		case <-stop:
		}
	}()
	go env.usage.run(ctx, env)

	err = actor.Run(ctx, env)
	if err != nil && ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		err = nil // it ended because it was told to
	}
	env.usage.report(s)
	return s.finish(err, exitFailed)
}

// finish says how the role ended and returns the exit status.
func (s *stream) finish(err error, status int) int {
	switch {
	case err == nil:
		status = exitOK
	case errors.Is(err, ErrUnsupported):
		s.message(&message{Type: msgUnsupported, Message: err.Error()})
		status = exitUnsupported
	case errors.Is(err, ErrCrashed):
		s.message(&message{Type: msgError, Message: err.Error(), Status: results.StatusCrashed})
	default:
		s.message(&message{Type: msgError, Message: err.Error()})
	}
	s.message(&message{Type: msgDone})
	s.flush()
	return status
}

func findActor(kinds []Kind, kind, role string) (Actor, error) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == kind })
	if i < 0 {
		return nil, fmt.Errorf("no workload kind %q", kind)
	}
	if f := kinds[i].Actors[role]; f != nil {
		return f(), nil
	}
	roles := make([]string, 0, len(kinds[i].Actors))
	for r := range kinds[i].Actors {
		roles = append(roles, r)
	}
	slices.Sort(roles)
	return nil, fmt.Errorf("workload kind %q has no role %q, only %s", kind, role, strings.Join(roles, ", "))
}

func readSpec(lines *bufio.Reader) (Spec, error) {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return Spec{}, fmt.Errorf("read the spec from stdin: %w", err)
	}
	var m specMessage
	if err := json.Unmarshal(line, &m); err != nil {
		return Spec{}, fmt.Errorf("read the spec from stdin: %w", err)
	}
	if m.Type != msgSpec || m.Protocol != Protocol {
		return Spec{}, fmt.Errorf("first line on stdin is %q of protocol %d, want %q of protocol %d", m.Type, m.Protocol, msgSpec, Protocol)
	}
	return m.Spec, nil
}

// obey follows the orchestrator's messages until the end of file, which ends
// the process even if the role does not return.
func (e *Env) obey(lines *bufio.Reader, cancel context.CancelCauseFunc) {
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			e.hurry()
			cancel(ErrOrphaned)
			time.Sleep(orphanGrace)
			os.Exit(exitFailed)
		}
		var c command
		if json.Unmarshal(line, &c) != nil {
			continue // a later protocol's message
		}
		switch c.Type {
		case msgStart:
			e.startOnce.Do(func() { e.t0 = c.T0NS; close(e.started) })
		case msgGo:
			e.goOnce.Do(func() { e.goNS = c.T0NS; close(e.gone) })
		case msgStop:
			cancel(ErrStopped)
		}
	}
}
