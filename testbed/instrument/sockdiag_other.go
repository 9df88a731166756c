//go:build !linux

package instrument

import "errors"

// openSockDiag refuses: sock_diag is Linux's.
func openSockDiag(Namespace) (tcpDump, error) {
	return nil, errors.New("TCP flows can be followed on Linux only")
}
