//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the exclusive lock of an open directory without waiting.
func lockFile(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}
