package netns

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Starter starts processes inside namespaces. All of them are children of its
// one thread and die with it: by Close, or with this process.
type Starter struct {
	jobs chan startJob
	done chan struct{}
	once sync.Once
}

type startJob struct {
	ns    *NS
	cmd   *exec.Cmd
	reply chan error
}

// NewStarter starts the thread.
func NewStarter() *Starter {
	s := &Starter{jobs: make(chan startJob), done: make(chan struct{})}
	go offMainThread(s.loop)
	return s
}

// offMainThread runs f on a thread of its own that is not the process's first:
// that one never ends, whatever its goroutine does (the runtime parks it), and
// so would never be the dead parent of anybody.
func offMainThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	locked := make(chan struct{})
	go func() {
		// While the first thread is ours, this is another one.
		runtime.LockOSThread()
		close(locked)
		f()
	}()
	<-locked
	runtime.UnlockOSThread()
}

// Start starts cmd inside the namespace. Unless the command has asked for
// another signal, it is killed when the starter is closed or this process
// ends. The caller waits for it.
func (s *Starter) Start(n *NS, cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	if cmd.SysProcAttr.Pdeathsig == 0 {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	job := startJob{ns: n, cmd: cmd, reply: make(chan error, 1)}
	select {
	case s.jobs <- job:
		return <-job.reply
	case <-s.done:
		return errors.New("start process: the testbed is closed")
	}
}

// Close ends the thread, and with it the processes it started.
func (s *Starter) Close() { s.once.Do(func() { close(s.done) }) }

// loop runs on a locked thread and never unlocks it: it dies with the
// goroutine.
func (s *Starter) loop() {
	home, err := unix.Open(threadNS, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for {
		select {
		case j := <-s.jobs:
			if err != nil {
				j.reply <- fmt.Errorf("open the current namespace: %w", explain(err))
				continue
			}
			j.reply <- startIn(j.ns, j.cmd)
			// Going home keeps the thread from holding the namespace; where
			// that does not work, the next Start enters another one anyway.
			_ = unix.Setns(home, unix.CLONE_NEWNET)
		case <-s.done:
			if err == nil {
				unix.Close(home)
			}
			return
		}
	}
}

func startIn(n *NS, cmd *exec.Cmd) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.fd < 0 {
		return errors.New("start process: the namespace is closed")
	}
	if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter namespace: %w", explain(err))
	}
	return cmd.Start()
}
