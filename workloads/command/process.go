package command

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"wirelab/workloads"
)

const (
	// killAfter is how long a program may take to follow its stop signal.
	killAfter = time.Second
	// hurriedKill is killAfter when nobody waits for results.
	hurriedKill = 300 * time.Millisecond
	// drainFor is how long output is still read after the program's end, when a
	// process it left behind holds it open.
	drainFor = 500 * time.Millisecond
)

// process is a started program.
type process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
	began          time.Time
	beginNS, endNS int64          // CLOCK_MONOTONIC; endNS is set when waited is closed
	waited         chan struct{}  // closed when the program is gone
	exited         chan struct{}  // closed when its output is complete, too
	signal         syscall.Signal // tells it to stop
	hurry          <-chan struct{}
	endOnce        sync.Once
	told           bool // it was running when it was told to stop
}

// start runs the program, with T0 if that is known.
func (r *runner) start(t0 int64) (*process, error) {
	path, err := r.c.program()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", workloads.ErrUnsupported, err)
	}
	cmd := &exec.Cmd{Path: path, Args: r.c.Argv, Dir: r.workingDir(), Env: os.Environ()}
	for name, value := range r.variables(t0) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return r.launch(cmd)
}

// launch starts a command with its output in files and its own process group.
func (r *runner) launch(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, waited: make(chan struct{}), exited: make(chan struct{}), signal: syscall.SIGTERM, hurry: r.env.Hurry()}
	if r.c.StopSignal == "INT" {
		p.signal = syscall.SIGINT
	}
	var err error
	if p.stdout, err = r.newOutput("stdout"); err != nil {
		return nil, err
	}
	if p.stderr, err = r.newOutput("stderr"); err != nil {
		p.stdout.discard()
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = p.stdout.writeEnd, p.stderr.writeEnd
	dieWithParent(cmd)
	started := make(chan error)
	go p.supervise(r.env.Now, started)
	if err := <-started; err != nil {
		p.stdout.discard()
		p.stderr.discard()
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	r.env.Watch(cmd.Process.Pid)
	return p, nil
}

// supervise starts the program and waits for it on one thread that lives as
// long as it does: the kernel ties the parent-death signal to the thread.
func (p *process) supervise(now func() int64, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p.began, p.beginNS = time.Now(), now()
	err := p.cmd.Start()
	p.stdout.begin()
	p.stderr.begin()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // the verdict is read from ProcessState
	p.endNS = now()
	close(p.waited)
	p.stdout.finish(drainFor)
	p.stderr.finish(drainFor)
	close(p.exited)
}

// end makes sure that the program and all it started are gone: it may run on
// for grace (unless there is a hurry), is told to stop, and is killed. It tells
// whether it was running when it was told.
func (p *process) end(grace time.Duration) (told bool) {
	p.endOnce.Do(func() {
		if !p.gone(grace, p.hurry) {
			p.told = true
			signalGroup(p.cmd.Process.Pid, p.signal)
			if !p.gone(hurriedKill, nil) && !p.gone(killAfter-hurriedKill, p.hurry) {
				signalGroup(p.cmd.Process.Pid, syscall.SIGKILL)
			}
		}
		<-p.waited // collected by its own waiter, not below
		killLeft(p.cmd.Process.Pid)
		<-p.exited
	})
	return p.told
}

// gone tells whether the program has ended within a time, which hurry (may be
// nil) cuts short.
func (p *process) gone(within time.Duration, hurry <-chan struct{}) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.waited:
		return true
	case <-hurry:
	case <-t.C:
	}
	select {
	case <-p.waited:
		return true
	default:
		return false
	}
}

// status returns the exit status or the name of the signal; it has exited.
func (p *process) status() (code int, signal string) {
	<-p.waited
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return -1, fmt.Sprintf("%d (%s)", int(ws.Signal()), ws.Signal())
	}
	return p.cmd.ProcessState.ExitCode(), ""
}

// cpu returns the CPU time used in s.
func (p *process) cpu() (float64, bool) {
	s := p.cmd.ProcessState
	if s == nil {
		return 0, false
	}
	return (s.UserTime() + s.SystemTime()).Seconds(), true
}

// lastWords is what it printed last, on stderr if anything is there.
func (p *process) lastWords() string {
	for _, o := range []*output{p.stderr, p.stdout} {
		if words := workloads.LastWords(o.tail()); words != "" {
			return words
		}
	}
	return "it printed nothing"
}

// killLeft kills the rest of the program's process group, and what escaped from it into
// groups of its own: orphans below us become our children.
func killLeft(group int) {
	workloads.KillGroup(group)
	for range 10 { // each may have started another meanwhile
		left := workloads.Descendants(os.Getpid())
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		reap()
	}
}

// tailSize is how much of an output is kept in memory.
const tailSize = 64 << 10

// output is one of a program's two outputs: into a file, and watched.
type output struct {
	path     string
	file     *os.File
	readEnd  *os.File
	writeEnd *os.File
	done     chan struct{}
	watch    []func(chunk []byte) // called with whatever arrives

	mu   sync.Mutex
	last []byte // at most twice tailSize
	err  error  // of writing the file
}

func (r *runner) newOutput(name string) (*output, error) {
	o := &output{path: r.prefix + "." + name, done: make(chan struct{})}
	var err error
	if o.file, err = os.Create(o.path); err != nil {
		return nil, err
	}
	if o.readEnd, o.writeEnd, err = os.Pipe(); err != nil {
		o.file.Close()
		return nil, err
	}
	for _, k := range r.c.Captures {
		if k.Regex != "" && k.source() == name {
			o.watch = append(o.watch, r.series(k))
		}
	}
	return o, nil
}

// begin reads; the program holds the other end.
func (o *output) begin() {
	o.writeEnd.Close()
	go func() {
		defer close(o.done)
		defer o.file.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := o.readEnd.Read(buf)
			o.take(buf[:n])
			if err != nil {
				return
			}
		}
	}()
}

func (o *output) take(chunk []byte) {
	if len(chunk) == 0 {
		return
	}
	_, err := o.file.Write(chunk)
	o.mu.Lock()
	if o.err == nil {
		o.err = err
	}
	o.last = append(o.last, chunk...)
	if len(o.last) > 2*tailSize {
		o.last = append(o.last[:0], o.last[len(o.last)-tailSize:]...)
	}
	o.mu.Unlock()
	for _, w := range o.watch {
		w(chunk)
	}
}

// kept returns why the output is not complete in its file; it has ended.
func (o *output) kept() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// tail returns what was printed last.
func (o *output) tail() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]byte(nil), o.last...)
}

// finish waits for the rest, a little.
func (o *output) finish(within time.Duration) {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-o.done:
	case <-t.C:
	}
	o.readEnd.Close()
	<-o.done
}

// discard gives up an output that nobody will write.
func (o *output) discard() {
	for _, c := range []io.Closer{o.readEnd, o.writeEnd, o.file} {
		c.Close()
	}
}
