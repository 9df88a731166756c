// Package netns makes network namespaces and runs code inside them.
//
// A namespace made by [New] is held by a descriptor of this process and by
// nothing else: no mount pins it, so the kernel removes it, with every device
// in it, when the process ends for whatever reason. [NS.Link] gives it a name
// in the file system, a symbolic link to the descriptor, that other programs
// can use while the process lives:
//
//	nsenter --net=/run/wirelab/RUN/ns/left1 ss -ti
//	ip -n ../wirelab/RUN/ns/left1 address   # names are relative to /run/netns
//
// A thread is in one namespace at a time, and Go moves goroutines between
// threads. [NS.Do] therefore runs its function on a private goroutine with a
// locked thread; the thread is unlocked only once it is certainly back where
// it came from, otherwise it stays locked and dies with its goroutine.
// Goroutines started by the function do not inherit the namespace. Sockets
// stay in the namespace in which they were opened, so most work needs no more
// than opening one inside Do.
//
// Processes are started by a [Starter], whose one thread lives until it is
// closed: a parent-death signal is sent when the parent *thread* ends, so a
// thread that returns to Go's pool or dies is no good parent.
//
// Other packages of the testbed see namespaces only through this one.
package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"

	"github.com/containernetworking/plugins/pkg/ns"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

const threadNS = "/proc/thread-self/ns/net"

// ID identifies a namespace on this host since boot.
type ID struct {
	// Inode is the number in /proc/PID/ns/net; the kernel uses it again after
	// the namespace is gone.
	Inode uint64 `json:"inode"`
	// Cookie is never used again before a reboot (SO_NETNS_COOKIE, Linux
	// 5.14); 0 where the kernel has none.
	Cookie uint64 `json:"cookie"`
}

// NS is an open network namespace.
type NS struct {
	id ID

	mu sync.RWMutex // guards fd against Close while it is used
	fd int          // -1 when closed
}

// New makes an empty namespace and, when inside is not nil, runs it there
// before returning. An error of inside is returned and the namespace is gone.
func New(inside func(*NS) error) (*NS, error) {
	var made *NS
	err := private(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", explain(err))
		}
		n, err := current()
		if err != nil {
			return err
		}
		if inside != nil {
			if err := inside(n); err != nil {
				return errors.Join(err, n.Close())
			}
		}
		made = n
		return nil
	})
	return made, err
}

// Open opens the namespace at a path such as /proc/PID/ns/net or one made by
// [NS.Link].
func Open(path string) (*NS, error) {
	if err := ns.IsNSorErr(path); err != nil {
		return nil, fmt.Errorf("open namespace %s: %w", path, err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open namespace %s: %w", path, err)
	}
	n := &NS{fd: fd}
	if err := n.Do(func() error { return n.identify() }); err != nil {
		return nil, errors.Join(fmt.Errorf("open namespace %s: %w", path, err), n.Close())
	}
	return n, nil
}

// current opens the namespace of the calling thread, which must be locked.
func current() (*NS, error) {
	fd, err := unix.Open(threadNS, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the current namespace: %w", explain(err))
	}
	n := &NS{fd: fd}
	if err := n.identify(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// identify fills in the id; the calling thread is in the namespace.
func (n *NS) identify() error {
	var st unix.Stat_t
	if err := unix.Fstat(n.fd, &st); err != nil {
		return fmt.Errorf("identify namespace: %w", err)
	}
	n.id.Inode = st.Ino
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("identify namespace: %w", err)
	}
	defer unix.Close(s)
	if c, err := unix.GetsockoptUint64(s, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err == nil {
		n.id.Cookie = c
	}
	return nil
}

// ID identifies the namespace.
func (n *NS) ID() ID { return n.id }

// FD is the descriptor that holds the namespace, for netlink attributes that
// want one. It is valid until Close.
func (n *NS) FD() int {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.fd
}

// Handle is the descriptor in the type that netlink.NewHandleAt takes.
func (n *NS) Handle() netns.NsHandle { return netns.NsHandle(n.FD()) }

// Path names the namespace for any process of root's while this one lives.
func (n *NS) Path() string {
	return "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(n.FD())
}

// Link names the namespace in the file system: path becomes a symbolic link.
// Removing it is up to the caller.
func (n *NS) Link(path string) error {
	if err := os.Symlink(n.Path(), path); err != nil {
		return fmt.Errorf("name namespace: %w", err)
	}
	return nil
}

// Do runs fn on a thread inside the namespace and returns its error. Calls may
// run at the same time.
func (n *NS) Do(fn func() error) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.fd < 0 {
		return errors.New("enter namespace: it is closed")
	}
	return private(func() error {
		if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter namespace: %w", explain(err))
		}
		return fn()
	})
}

// Close gives up the namespace. The kernel removes it and its devices, in the
// background, once no process, socket or descriptor is in it.
func (n *NS) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fd < 0 {
		return nil
	}
	err := unix.Close(n.fd)
	n.fd = -1
	return err
}

// private runs fn on a goroutine with a locked thread and puts the thread back
// into the namespace it had. If that is in doubt the thread stays locked, so
// that it ends with the goroutine and nobody else meets it.
func private(fn func() error) error {
	err := errors.New("the function left its goroutine")
	done := make(chan struct{})
	go func() {
		defer close(done) // also when fn calls runtime.Goexit
		runtime.LockOSThread()
		home, e := unix.Open(threadNS, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if e != nil {
			runtime.UnlockOSThread()
			err = fmt.Errorf("open the current namespace: %w", explain(e))
			return
		}
		defer unix.Close(home)
		err = fn()
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	<-done
	return err
}

// explain adds what the operator can do about an error of the kernel.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: run as root (CAP_SYS_ADMIN is needed)", err)
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: the limit user.max_net_namespaces is reached", err)
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		return fmt.Errorf("%w: raise the limit of open files (ulimit -n)", err)
	}
	return err
}
