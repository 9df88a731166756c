//go:build !linux

package instrument

import (
	"context"
	"errors"
)

// startCapture refuses: packet rings are Linux's.
func startCapture(context.Context, Capture, Target, []captureDevice) (Running, error) {
	return nil, errors.New("packets can be captured on Linux only")
}
