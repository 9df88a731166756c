package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/testbed/journal"
)

func init() {
	roles["world"] = world
	roles["victim"] = victim
	roles["idle"] = func([]string) error { time.Sleep(time.Hour); return nil }
}

// TestCleanAfterKill kills a process that builds and holds testbeds at random
// instants, cleans, and compares the host with before. The host is a world of
// the test's own: new process, mount and network namespaces with an empty /run,
// so that nothing else on the machine can change what is compared.
// WIRELAB_KILLS sets the number of kills.
func TestCleanAfterKill(t *testing.T) {
	needRoot(t)
	kills := 10
	if testing.Short() {
		kills = 3
	}
	if s := os.Getenv("WIRELAB_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/proc/self/exe", "world", strconv.Itoa(kills))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) {
		t.Skipf("cannot make a world to kill in: %v", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// world is process 1 of the world.
func world(args []string) error {
	kills, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	for _, m := range []struct{ fs, path string }{{"", "/"}, {"proc", "/proc"}, {"tmpfs", "/run"}} {
		flags := uintptr(0)
		if m.fs == "" {
			flags = unix.MS_REC | unix.MS_PRIVATE
		}
		if err := unix.Mount(m.fs, m.path, m.fs, flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.path, err)
		}
	}
	// Something of the user's that looks as if it were ours.
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "s1-eth1", Alias: "wirelab:other:x"}, PeerName: "w0a"}); err != nil {
		return err
	}
	before, err := snapshot()
	if err != nil {
		return err
	}
	var errs []error
	for i := range kills {
		delay := time.Duration(rand.Int64N(int64(400 * time.Millisecond)))
		report, err := killOne(delay)
		if err == nil {
			var after string
			if after, err = snapshot(); err == nil && before != after {
				err = fmt.Errorf("the host differs (-before +after):\n%s", cmp.Diff(before, after))
			}
		}
		fmt.Printf("kill %d after %v: %+v\n", i, delay, report.Cleaned)
		if err != nil {
			errs = append(errs, fmt.Errorf("kill %d after %v: %w", i, delay, err))
		}
	}
	return errors.Join(errs...)
}

// killOne kills a victim after a while and cleans up.
func killOne(delay time.Duration) (Report, error) {
	cmd := exec.Command("/proc/self/exe", "victim")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// A pipe that its descendants inherit is waited for; files are not.
	cmd.WaitDelay = time.Millisecond
	if err := cmd.Start(); err != nil {
		return Report{}, err
	}
	time.Sleep(delay) // the instant is the point: nothing is waited for
	if err := cmd.Process.Kill(); err != nil {
		return Report{}, err
	}
	if err := cmd.Wait(); err == nil || out.Len() > 0 {
		return Report{}, fmt.Errorf("the victim ended by itself: %w: %s", err, &out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	return Clean(ctx, journal.DefaultDir)
}

// victim builds testbeds, starts processes in them and takes them down, until
// it is killed.
func victim([]string) error {
	for {
		j, err := journal.Create(journal.DefaultDir, NewRunID(), "test")
		if err != nil {
			return err
		}
		topo := chainOf(3)
		topo.Links[1].Forward = emul.Impairment{Delay: time.Millisecond}
		tb, err := Up(context.Background(), topo, Options{Journal: j, Backend: software.New(software.Options{})})
		if err != nil {
			return err
		}
		for i := range 4 {
			// Every other one ignores TERM, leaves its session and its parent, as
			// a daemon does.
			argv := []string{"/proc/self/exe", "idle"}
			if i%2 == 1 {
				argv = []string{"/bin/sh", "-c", "trap '' TERM; setsid /proc/self/exe idle & sleep 1000 & exec env -i sleep 1000"}
			}
			if err := tb.Hosts()[i%3].Start(exec.Command(argv[0], argv[1:]...)); err != nil {
				return err
			}
		}
		time.Sleep(50 * time.Millisecond) // be killed while it stands, too
		if err := errors.Join(tb.Close(), j.Remove()); err != nil {
			return err
		}
	}
}

// snapshot describes the host: devices, queueing disciplines, processes,
// namespaces and what is in /run.
func snapshot() (string, error) {
	var b strings.Builder
	links, err := netlink.LinkList()
	if err != nil {
		return "", err
	}
	for _, l := range links {
		a := l.Attrs()
		fmt.Fprintf(&b, "link %d %s %s %s %q %v master %d\n", a.Index, l.Type(), a.Name, a.HardwareAddr, a.Alias, a.Flags, a.MasterIndex)
		qdiscs, err := netlink.QdiscList(l)
		if err != nil {
			return "", err
		}
		for _, q := range qdiscs {
			fmt.Fprintf(&b, "qdisc %s %s\n", a.Name, q)
		}
	}
	reap()
	processes, err := findProcesses(func(pid int) bool { return namespaceInode(pid) != 0 })
	if err != nil {
		return "", err
	}
	namespaces := []uint64{namespaceInode(os.Getpid())}
	for _, p := range processes {
		fmt.Fprintf(&b, "process %v\n", p)
		namespaces = append(namespaces, namespaceInode(p.pid))
	}
	slices.Sort(namespaces)
	fmt.Fprintf(&b, "namespaces %v\n", slices.Compact(namespaces))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "mounts %s\n", mounts)
	err = filepath.WalkDir("/run", func(path string, d fs.DirEntry, err error) error {
		fmt.Fprintf(&b, "file %s %v\n", path, err)
		return nil
	})
	return b.String(), err
}

// reap takes in the processes that process 1 has inherited.
func reap() {
	for {
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || pid <= 0 {
			return
		}
	}
}
