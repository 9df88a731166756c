//go:build !linux

package software

import (
	"context"
	"errors"

	"wirelab/emul"
)

var errLinux = errors.New("the software backend needs Linux: it forwards through packet sockets")

// Join implements emul.Backend; it needs Linux.
func (b *Backend) Join(context.Context, []emul.Cable) (emul.Session, error) { return nil, errLinux }

// SteeringCores is empty where there is nothing to steer.
func (b *Backend) SteeringCores() []int { return nil }

// ForwardMain is the forwarding process; it needs Linux.
func ForwardMain(context.Context) error { return errLinux }
