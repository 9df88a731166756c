package workloads

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"wirelab/results"
)

// boundLoad is the share of a core from which a generator measured itself.
const boundLoad = 0.95

// Result is how an actor did, once it is gone.
type Result struct {
	Status results.Status
	// Error is why it is not ok: the actor's own words where it had any.
	Error   string
	Records []results.Record
	// Notes are doubts: generator-bound, unreadable messages.
	Notes []string
	// CPUSeconds is what the process and its waited-for children used in all;
	// WindowCPUSeconds what they used in the measurement window, where known.
	CPUSeconds, WindowCPUSeconds float64
	// MaxCoreLoad is the busiest thread's share of a core in the window, or the
	// process's share of the cores it may use, whichever is larger.
	MaxCoreLoad float64
	Samples     int // values reported
}

// ActorRecord returns the part of the result that run.json keeps.
func (r Result) ActorRecord(name, node, log string) results.ActorRecord {
	return results.ActorRecord{Name: name, Node: node, Status: r.Status, Error: r.Error,
		CPUSeconds: r.CPUSeconds, MaxCoreLoad: r.MaxCoreLoad, Log: log}
}

// Result waits until the process is gone and judges it.
func (p *Process) Result() Result {
	<-p.exited
	r := p.report
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Result{Records: r.records, WindowCPUSeconds: r.cpu, MaxCoreLoad: p.coreLoad(), Samples: r.samples}
	if s := p.cmd.ProcessState; s != nil {
		out.CPUSeconds = (s.UserTime() + s.SystemTime()).Seconds()
	}
	out.Status, out.Error = p.judge()
	if out.MaxCoreLoad >= boundLoad {
		out.Notes = append(out.Notes, fmt.Sprintf("generator-bound: it used %.0f %% of a core", 100*out.MaxCoreLoad))
	}
	if r.badLines > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("it wrote %d unreadable messages, see its log", r.badLines))
	}
	if r.missing > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("it reported %d values that are no finite number", r.missing))
	}
	return out
}

// coreLoad holds the report's mutex.
func (p *Process) coreLoad() float64 {
	r := p.report
	if r.windowS <= 0 {
		return 0
	}
	cores := len(p.opts.Spec.Cores)
	if cores == 0 {
		cores = runtime.NumCPU()
	}
	return max(r.load, r.cpu/r.windowS/float64(cores))
}

// judge holds the report's mutex.
func (p *Process) judge() (results.Status, string) {
	r := p.report
	signal := exitSignal(p.waitErr)
	switch {
	case r.unsupported != "":
		return results.StatusUnsupported, r.unsupported
	case r.failure != "" && r.crashed:
		return results.StatusCrashed, r.failure
	case r.failure != "":
		return results.StatusFailed, r.failure
	case p.late.Load() && !r.saidDone:
		return results.StatusFailed, fmt.Sprintf("it did not end within %v of being told to", p.opts.Grace)
	case signal != 0:
		return results.StatusCrashed, p.lastWords(fmt.Sprintf("ended by signal %d (%s)", int(signal), signal))
	case p.waitErr != nil && p.panicked():
		return results.StatusCrashed, p.lastWords(p.waitErr.Error())
	case p.waitErr != nil:
		return results.StatusFailed, p.lastWords(p.waitErr.Error())
	case !r.saidDone:
		return results.StatusFailed, p.lastWords(`it ended without saying "done"`)
	case r.missing > 0 || r.badLines > 0:
		return results.StatusPartial, ""
	}
	return results.StatusOK, ""
}

func exitSignal(err error) syscall.Signal {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal()
	}
	return 0
}

// lastWords joins how a process ended with what it last printed.
func (p *Process) lastWords(how string) string {
	text, err := os.ReadFile(p.opts.LogPath)
	if err != nil {
		return how
	}
	if words := LastWords(text); words != "" {
		return how + ": " + words
	}
	return how
}

// LastWords picks the line of a program's output that most likely says why it
// ended: a panic of Go, else its last line that is not empty.
func LastWords(output []byte) string {
	last := ""
	for line := range strings.Lines(string(output)) {
		line = strings.TrimSpace(line)
		if isPanic(line) {
			return clip(line)
		}
		if line != "" {
			last = line
		}
	}
	return clip(last)
}

func isPanic(line string) bool {
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

func clip(line string) string {
	const most = 300
	if len(line) > most {
		return strings.ToValidUTF8(line[:most], "") + "..."
	}
	return strings.ToValidUTF8(line, "?")
}

// panicked tells whether a Go program ended by a panic.
func (p *Process) panicked() bool {
	text, err := os.ReadFile(p.opts.LogPath)
	return err == nil && isPanic(LastWords(text))
}

// kill is the last resort of Stop.
func (p *Process) kill() {
	select {
	case <-p.exited:
		return
	default:
	}
	p.late.Store(true)
	_ = p.cmd.Process.Kill() // its group follows when it is gone
}

// logFile is an actor's log: its own output and what it says in messages.
type logFile struct {
	file *os.File
	mu   sync.Mutex
	open bool // guarded by mu
}

func openLog(path string) (*logFile, error) {
	if path == "" {
		path = os.DevNull
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return &logFile{file: f, open: true}, nil
}

func (l *logFile) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open {
		_, _ = l.file.WriteString(strings.TrimRight(text, "\n") + "\n")
	}
}

func (l *logFile) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = false
	l.file.Close()
}
