package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"wirelab/results"
)

// ProcessOptions say which role to start and where its output goes.
type ProcessOptions struct {
	// Binary is the executable; Args are its arguments without the name,
	// default "actor", KIND, ROLE.
	Binary string
	Args   []string
	// Dir is its working directory, "" for the caller's.
	Dir  string
	Spec Spec
	// LogPath is a file for its stdout, stderr and log messages; appended to.
	LogPath string
	// Record takes samples, in the order they arrive, from one goroutine.
	Record func(results.Sample)
	// Grace is what stop waits for, twice: after the message and after TERM.
	// Default 5 s.
	Grace time.Duration
}

// Process is a running actor, seen by the orchestrator.
type Process struct {
	opts   ProcessOptions
	cmd    *exec.Cmd
	stdin  *os.File
	log    *logFile
	report *report

	stopOnce sync.Once
	exited   chan struct{} // closed when the process is gone and all was read
	late     atomic.Bool   // had to be told by a signal
	waitErr  error         // guarded by exited
}

// StartProcess starts an actor and sends its spec. start runs the command,
// usually inside a node's namespace; it may set attributes of the process but
// no parent-death signal, unless its thread outlives the actor. When ctx ends
// the actor is told so, and killed when it does not follow.
func StartProcess(ctx context.Context, start func(*exec.Cmd) error, opts ProcessOptions) (*Process, error) {
	if opts.Grace == 0 {
		opts.Grace = 5 * time.Second
	}
	if opts.Args == nil {
		opts.Args = []string{"actor", opts.Spec.Kind, opts.Spec.Role}
	}
	name := opts.Spec.Workload + "." + opts.Spec.Role
	spec, err := json.Marshal(specMessage{Type: msgSpec, Protocol: Protocol, Spec: opts.Spec})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	log, err := openLog(opts.LogPath)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{
		opts: opts, log: log, exited: make(chan struct{}),
		report: newReport(opts.Spec.Workload, opts.Spec.Role, opts.Record, log.line),
	}
	out, err := p.spawn(start)
	if err != nil {
		log.close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	// A write error means that it died or does not listen: its last words, or
	// that it never becomes ready, say more.
	_ = p.write(append(spec, '\n'))
	forget := context.AfterFunc(ctx, p.abandon)
	go func() {
		defer forget()
		p.follow(out)
	}()
	return p, nil
}

// spawn runs the command with its pipes and returns the end to read from.
func (p *Process) spawn(start func(*exec.Cmd) error) (*os.File, error) {
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inR.Close(), inW.Close())
	}
	growPipe(outW)
	cmd := exec.Command(p.opts.Binary, p.opts.Args...)
	cmd.Dir = p.opts.Dir
	cmd.Stdin = inR
	cmd.Stdout, cmd.Stderr = p.log.file, p.log.file
	cmd.ExtraFiles = []*os.File{outW}
	ownGroup(cmd)
	err = start(cmd)
	inR.Close()
	outW.Close()
	if err != nil {
		return nil, errors.Join(err, inW.Close(), outR.Close())
	}
	p.cmd, p.stdin = cmd, inW
	return outR, nil
}

// follow reads what the actor says until it is gone.
func (p *Process) follow(out *os.File) {
	read := make(chan struct{})
	go func() {
		p.report.read(out)
		close(read)
	}()
	err := p.cmd.Wait()
	KillGroup(p.cmd.Process.Pid)
	// A child that left the group may hold the pipe open: do not wait for it
	// longer than for the actor itself.
	select {
	case <-read:
	case <-time.After(p.opts.Grace):
	}
	out.Close()
	<-read
	p.stdin.Close()
	p.log.close()
	p.waitErr = err
	p.report.finish()
	close(p.exited)
}

// writeTimeout bounds how long a message waits for an actor that does not read
// while its pipe is full.
const writeTimeout = 5 * time.Second

// write writes a line; the file keeps lines written at the same time apart. What
// comes after a line that was cut short would make no sense: stdin then ends.
func (p *Process) write(line []byte) error {
	_ = p.stdin.SetWriteDeadline(time.Now().Add(writeTimeout)) // a closed one fails below
	_, err := p.stdin.Write(line)
	if err != nil {
		p.stdin.Close()
	}
	return err
}

func (p *Process) send(c command) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := p.write(append(line, '\n')); err != nil {
		return fmt.Errorf("tell %s to %s: %w: see %s", p.Name(), c.Type, err, p.opts.LogPath)
	}
	return nil
}

// Name is workload.role.
func (p *Process) Name() string { return p.report.actor }

// PID is the process number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// WaitReady returns the endpoints the role reported, or an error when it died,
// failed, or ctx ended first.
func (p *Process) WaitReady(ctx context.Context) (map[string]string, error) {
	select {
	case <-p.report.ready:
	case <-p.exited:
		select {
		case <-p.report.ready: // it was ready before it ended
		default:
			r := p.Result()
			return nil, &NotReadyError{Name: p.Name(), Status: r.Status, Reason: r.Error, Log: p.opts.LogPath}
		}
	case <-ctx.Done():
		return nil, &NotReadyError{Name: p.Name(), Status: results.StatusFailed,
			Reason: fmt.Sprintf("no word of it within the time given (%v)", context.Cause(ctx)), Log: p.opts.LogPath}
	}
	p.report.mu.Lock()
	defer p.report.mu.Unlock()
	return p.report.endpoints, nil
}

// NotReadyError says why a role never became ready.
type NotReadyError struct {
	Name   string
	Status results.Status
	Reason string
	Log    string // path of its log
}

// Error implements error.
func (e *NotReadyError) Error() string {
	return fmt.Sprintf("wait for %s to be ready: %s (log: %s)", e.Name, e.Reason, e.Log)
}

// Start tells the actor T0, on CLOCK_MONOTONIC in ns.
func (p *Process) Start(t0NS int64) error {
	p.report.mu.Lock()
	p.report.t0 = t0NS
	p.report.mu.Unlock()
	return p.send(command{Type: msgStart, T0NS: t0NS})
}

// Go starts a role that waits for another workload's end, at an instant on
// CLOCK_MONOTONIC in ns.
func (p *Process) Go(atNS int64) error { return p.send(command{Type: msgGo, T0NS: atNS}) }

// Finished is closed when the actor says that its work is done, or is gone.
func (p *Process) Finished() <-chan struct{} { return p.report.finished }

// Done is closed when the process is gone and all it said was read.
func (p *Process) Done() <-chan struct{} { return p.exited }

// Stop ends the actor: it may say its summary within the grace, then gets
// SIGTERM, and after the same time again SIGKILL. It returns when the process
// is gone. When ctx ends there is no summary to wait for: SIGTERM comes at once
// and the rest within [hurry], which lets a role end what it started itself.
func (p *Process) Stop(ctx context.Context) {
	p.stopOnce.Do(func() {
		_ = p.send(command{Type: msgStop}) // a dead one needs no telling
	})
	if p.waitGone(ctx, p.opts.Grace) {
		return
	}
	p.late.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // one that ended needs no telling
	if p.waitGone(ctx, p.opts.Grace) {
		return
	}
	if ctx.Err() != nil && p.waitGone(context.WithoutCancel(ctx), min(p.opts.Grace, hurry)) {
		return
	}
	p.kill()
	<-p.exited
}

// hurry is how long a role may take to end when nobody waits for its results.
const hurry = time.Second

// waitGone tells whether the process is gone within a time, which ctx cuts
// short.
func (p *Process) waitGone(ctx context.Context, within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-ctx.Done():
	case <-t.C:
	}
	return false
}

// abandon is what a dead orchestrator looks like to the actor.
func (p *Process) abandon() {
	select {
	case <-p.exited:
		return
	default:
	}
	p.stdin.Close()
	if !p.waitGone(context.Background(), p.opts.Grace) {
		p.kill()
	}
}
