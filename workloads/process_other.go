//go:build !linux

package workloads

import (
	"os"
	"os/exec"
	"syscall"
)

func growPipe(*os.File) {}

func ownGroup(*exec.Cmd) {}

func terminate(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
