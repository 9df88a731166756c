//go:build !linux

package instrument

import "errors"

// Offloads is for Linux.
func Offloads(Namespace, string) ([]string, error) {
	return nil, errors.New("read offloads: only on Linux")
}
