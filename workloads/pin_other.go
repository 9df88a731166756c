//go:build !linux

package workloads

import "fmt"

func pin(cores []int) error {
	if len(cores) == 0 {
		return nil
	}
	return fmt.Errorf("%w: pinning to cores", ErrUnsupported)
}

func closeOnExec(int) {}
