//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

func ownMounts(*exec.Cmd) {}

// become needs Linux: there are no nodes elsewhere.
func become(string, []string) error {
	return exit(exitHost, errors.New("network namespaces need Linux"))
}
