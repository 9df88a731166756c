package workloads

import (
	"errors"
)

// ErrUnsupported marks a role that this host cannot play.
var ErrUnsupported = errors.New("not supported here")

// Env is what an actor is given. See protocol.go.
type Env struct {
	Spec Spec
}
