//go:build !linux

package tcp

import (
	"errors"
	"fmt"
	"syscall"

	"wirelab/workloads"
)

var errOS = fmt.Errorf("%w: kernel TCP is measured on Linux only", workloads.ErrUnsupported)

func (w *Workload) setSender(int) error { return errOS }

func trySocket(*Workload) error { return errOS }

func (w *Workload) setReceiver(int) error { return errOS }

func congestionOf(int) string { return "" }

const infoSize = 512

func readInfo(uintptr, *[infoSize]byte) (info, error) { return info{}, errOS }

func receive(uintptr, []byte, int64) (int64, error) { return 0, errOS }

func again(err error) bool { return errors.Is(err, syscall.EAGAIN) }
