package main

import (
	"bytes"
	"context"
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

	"wirelab/testbed"
)

// TestKill kills the whole process tree of a run at random instants; after
// clean the host must look as before: devices, qdiscs, namespaces, processes,
// files in /run. WIRELAB_KILLS sets how often (default 4).
func TestKill(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("building a network needs root")
	}
	kills := 4
	if v := os.Getenv("WIRELAB_KILLS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil {
			t.Fatal(err)
		}
		kills = n
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "victim.hcl")
	if err := os.WriteFile(file, []byte(victim), 0o644); err != nil {
		t.Fatal(err)
	}
	// Not the usual folder: other tests may be running networks there.
	state := filepath.Join("/run", "wirelab-test-"+strconv.Itoa(os.Getpid()))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range kills {
		before := hostState(t, state)
		// The run takes some 2.4 s; an instant after its end is a case too.
		after := time.Duration(rng.Int64N(int64(2600 * time.Millisecond)))
		killed := killedRun(t, file, filepath.Join(dir, "out"+strconv.Itoa(i)), state, after)
		t0 := time.Now()
		if _, err := testbed.Clean(context.Background(), state); err != nil {
			t.Errorf("clean after a kill at %s: %v", after, err)
		}
		// What the kernel does behind our back takes a moment.
		var got string
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if got = hostState(t, state); got == before {
				break
			}
		}
		t.Logf("kill %d at %s: %d processes, clean in %s", i, after, killed, time.Since(t0))
		if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Fatalf("kill %d at %s (%d processes) left something:\n%s", i, after, killed, diff)
		}
	}
}

const victim = `
experiment "victim" {
  duration    = "700ms"
  repetitions = 2
}

topology "dumbbell" "net" {
  bottleneck {
    rate = "20mbit"
    rtt  = "4ms"
  }
}

workload "tcp" "bulk" {
  from = "left1"
  to   = "right1"
}

workload "command" "sleeper" {
  on   = "left1"
  argv = ["sh", "-c", "sleep 100 & wait"]
}
`

// killedRun starts a run and kills its process tree after a while. It returns
// how many processes there were.
func killedRun(t *testing.T, file, out, state string, after time.Duration) int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "run", file, "-o", out)
	cmd.Env = append(os.Environ(), asMain+"=1", "WIRELAB_STATE="+state)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	tree := descendants(cmd.Process.Pid)
	for _, pid := range tree {
		// One may have ended since it was listed.
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = cmd.Wait() // killed
	return len(tree)
}

// descendants lists a process and everything below it, itself first.
func descendants(root int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		parent, _ := strconv.Atoi(fields[1])
		children[parent] = append(children[parent], pid)
	}
	tree := []int{root}
	for i := 0; i < len(tree); i++ {
		tree = append(tree, children[tree[i]]...)
	}
	return tree
}

// hostState describes what a run could leave behind on the host.
func hostState(t *testing.T, state string) string {
	t.Helper()
	var lines []string
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		a := l.Attrs()
		lines = append(lines, fmt.Sprintf("link %d %s %s %s %s", a.Index, a.Name, a.HardwareAddr, a.Alias, a.OperState))
		qdiscs, err := netlink.QdiscList(l)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range qdiscs {
			lines = append(lines, fmt.Sprintf("qdisc %s %v", a.Name, q))
		}
	}
	// Not the usual folder of journals: runs of other tests come and go there.
	for _, root := range []string{state, "/run/netns"} {
		_ = filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				lines = append(lines, "file "+path)
			}
			return nil
		})
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "nsfs") {
			lines = append(lines, "mount "+strings.TrimSpace(line))
		}
	}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		env, err := os.ReadFile(path)
		if err == nil && bytes.Contains(env, []byte("WIRELAB_STATE="+state+"\x00")) {
			lines = append(lines, "process "+filepath.Dir(path))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
