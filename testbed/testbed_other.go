//go:build !linux

package testbed

import (
	"context"
	"errors"
	"os/exec"

	"wirelab/emul"
	"wirelab/results"
)

// Testbeds are made of Linux network namespaces. On other systems files can be
// checked and planned, and reports made; everything here returns errLinux.
var errLinux = errors.New("this needs Linux: testbeds are made of its network namespaces")

// Testbed is a topology built; there is none on this system.
type Testbed struct{}

// Host is a node that was built; there is none on this system.
type Host struct{}

// Up fails on this system.
func Up(context.Context, Topology, Options) (*Testbed, error) { return nil, errLinux }

// Close does nothing.
func (*Testbed) Close() error { return nil }

// Host returns nil.
func (*Testbed) Host(string) *Host { return nil }

// Hosts returns none.
func (*Testbed) Hosts() []*Host { return nil }

// Topology is empty.
func (*Testbed) Topology() Topology { return Topology{} }

// RunID is empty.
func (*Testbed) RunID() string { return "" }

// Dir is empty.
func (*Testbed) Dir() string { return "" }

// Session returns nil.
func (*Testbed) Session() emul.Session { return nil }

// Devices returns none.
func (*Testbed) Devices() map[string][2]Device { return nil }

// Addresses returns none.
func (*Testbed) Addresses() map[string][]Address { return nil }

// Calibrate fails on this system.
func (*Testbed) Calibrate(context.Context, CalibrateOptions) (map[string]results.Calibration, error) {
	return nil, errLinux
}

// Hold fails on this system.
func (*Testbed) Hold(context.Context, string) error { return errLinux }

// Name is empty.
func (*Host) Name() string { return "" }

// Kind is empty.
func (*Host) Kind() NodeKind { return "" }

// Path is empty.
func (*Host) Path() string { return "" }

// Do fails on this system.
func (*Host) Do(func() error) error { return errLinux }

// Start fails on this system.
func (*Host) Start(*exec.Cmd) error { return errLinux }

// Addresses returns none.
func (*Host) Addresses() []Address { return nil }

// Doctor finds that this system is not Linux.
func Doctor(context.Context) []Finding {
	return []Finding{{Name: "kernel", Detail: errLinux.Error(), Remedy: "Run wirelab in a Linux virtual machine.", Needed: true}}
}

// Clean finds nothing.
func Clean(context.Context, string) (Report, error) { return Report{}, nil }

// Labs lists none.
func Labs(string) ([]*Lab, error) { return nil, nil }

// Attach fails on this system.
func Attach(string, string) (*Lab, error) { return nil, errLinux }

// StartOwner fails on this system.
func StartOwner(context.Context, *exec.Cmd, string, string) (*Lab, error) { return nil, errLinux }

// Node fails on this system.
func (*Lab) Node(string) (LabNode, error) { return LabNode{}, errLinux }

// Start fails on this system.
func (*Lab) Start(string, *exec.Cmd) error { return errLinux }

// Down fails on this system.
func (*Lab) Down(context.Context) error { return errLinux }
