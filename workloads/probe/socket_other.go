//go:build !linux

package probe

import (
	"fmt"
	"net/netip"

	"wirelab/workloads"
)

var errOS = fmt.Errorf("%w: ping runs on Linux only", workloads.ErrUnsupported)

type socket struct {
	echo echo
	how  string
}

func openSocket(netip.Addr, echo) (*socket, error) { return nil, errOS }

func (s *socket) send([]byte) error { return errOS }

func (s *socket) receive(func() int64) (uint64, int64, bool, error) { return 0, 0, false, errOS }

func (s *socket) close() {}
