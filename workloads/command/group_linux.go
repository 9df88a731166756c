package command

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes this process the parent of orphans below it, so that a
// daemon started by the program can be found and ended.
func becomeSubreaper() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// dieWithParent gives the program a process group of its own, and SIGKILL when
// the thread that starts it ends.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func signalGroup(group int, signal syscall.Signal) { _ = unix.Kill(-group, signal) }

// reap collects orphans that have ended. The program itself has been waited
// for: only children that nobody else waits for are left.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if pid <= 0 || err != nil {
			return
		}
	}
}
