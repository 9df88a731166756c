package workloads

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// reportPipe is the capacity of an actor's report pipe in bytes: what it may
// say while the orchestrator is busy, before it has to wait.
const reportPipe = 1 << 20

func growPipe(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	// Above fs.pipe-max-size an unprivileged process keeps the 64 KiB default.
	_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, reportPipe) })
}

// ownGroup keeps the terminal's ctrl-C from the actor: the orchestrator ends it
// in order.
func ownGroup(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
}

// KillGroup kills what is left of a process group whose leader, a child of ours,
// has been waited for. While a member is left the kernel gives the group's
// number to no other process: where a process has it, the group is gone.
func KillGroup(group int) {
	if errors.Is(unix.Kill(group, 0), unix.ESRCH) {
		_ = unix.Kill(-group, unix.SIGKILL) // there may be nobody left
	}
}
