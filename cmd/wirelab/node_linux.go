package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownMounts gives a command a mount namespace of its own, for the hosts file.
func ownMounts(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
}

// notFound is the exit status of shells for a command that cannot be run.
const notFound = 127

func become(hosts string, argv []string) error {
	// Our mounts must not reach the host's namespace.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return exit(exitHost, fmt.Errorf("prepare the node's mounts: %w", err))
	}
	if _, err := os.Stat("/etc/hosts"); err == nil {
		if err := unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
			return exit(exitHost, fmt.Errorf("mount the lab's hosts file: %w", err))
		}
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return exit(notFound, err)
	}
	return exit(notFound, fmt.Errorf("run %s: %w", path, syscall.Exec(path, argv, os.Environ())))
}
