package testbed

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"wirelab/testbed/netns"
)

// Host is a node that was built: a namespace with its devices.
type Host struct {
	name      string
	kind      NodeKind
	ns        *netns.NS
	t         *Testbed
	addresses []Address
}

// Name of the node.
func (h *Host) Name() string { return h.name }

// Kind of the node.
func (h *Host) Kind() NodeKind { return h.kind }

// Path names the node's namespace, for nsenter(1) and the like. It is valid
// while the process that holds the testbed lives.
func (h *Host) Path() string { return filepath.Join(h.t.nsDir(), h.name) }

// Do runs fn on a thread inside the node's namespace. Sockets that it opens
// stay in the node; goroutines that it starts do not.
func (h *Host) Do(fn func() error) error { return h.ns.Do(fn) }

// Start starts a process inside the node. It is killed when the testbed is
// closed or its process ends; its environment carries the run's tag. The
// caller waits for it.
func (h *Host) Start(cmd *exec.Cmd) error {
	cmd.Env = tagged(cmd.Env, h.t.run, h.name)
	if err := h.t.starter.Start(h.ns, cmd); err != nil {
		return fmt.Errorf("start %s in %s: %w", cmd.Path, h.name, err)
	}
	return nil
}

// Netlink opens a route netlink handle in the node's namespace; the caller
// closes it.
func (h *Host) Netlink() (*netlink.Handle, error) {
	handle, err := netlink.NewHandleAt(h.ns.Handle())
	if err != nil {
		return nil, fmt.Errorf("open netlink in %s: %w", h.name, err)
	}
	return handle, nil
}

// Addresses of the node in the order of its links; none at bridges.
func (h *Host) Addresses() []Address { return h.addresses }

const (
	tagName      = "WIRELAB_RUN="
	nodeVariable = "WIRELAB_NODE="
)

// tagged is the environment of a process in a node; nil stands for that of this
// process, which may itself be in a node of another run.
func tagged(env []string, run, node string) []string {
	if env == nil {
		env = os.Environ()
	}
	env = slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		return strings.HasPrefix(e, tagName) || strings.HasPrefix(e, nodeVariable)
	})
	return append(env, Tag(run), nodeVariable+node)
}

// Tag is the environment entry that all processes of a run carry.
func Tag(run string) string { return tagName + run }
