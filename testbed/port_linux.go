package testbed

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/testbed/netns"
)

// port is a device in the wire namespace.
type port struct {
	ns *netns.NS
	device
}

var _ emul.Port = (*port)(nil)

// Device implements emul.Port.
func (p *port) Device() string { return p.name }

// Index implements emul.Port.
func (p *port) Index() int { return p.index }

// PacketSocket implements emul.Port: a raw, non-blocking socket with protocol
// 0, so that it receives nothing until it is bound.
func (p *port) PacketSocket() (*os.File, error) {
	var fd int
	err := p.ns.Do(func() error {
		var err error
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open packet socket for %s: %w", p.name, err)
	}
	return os.NewFile(uintptr(fd), "packet:"+p.name), nil
}
