//go:build !linux

package command

import (
	"os/exec"
	"syscall"
)

func becomeSubreaper() {}

func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func signalGroup(group int, signal syscall.Signal) { _ = syscall.Kill(-group, signal) }

func reap() {}
