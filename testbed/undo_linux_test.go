package testbed

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"wirelab/testbed/journal"
	"wirelab/testbed/netns"
)

func init() {
	// The role "journal" writes one with the steps on its standard input and
	// ends.
	roles["journal"] = func(args []string) error {
		var steps []journal.Step
		j, err := journal.Create(args[0], args[1], "test")
		if err != nil {
			return err
		}
		if err := json.NewDecoder(os.Stdin).Decode(&steps); err != nil {
			return err
		}
		return j.Add(steps...)
	}
}

// deadRun writes the journal of a run whose owner is dead: that of a process
// that has ended before.
func deadRun(t *testing.T, dir, run string, steps ...journal.Step) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "journal", dir, run)
	text, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func startTagged(t *testing.T, tag string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "idle")
	cmd.Env = append(os.Environ(), tag)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// Each kind of step is undone if it still is what the journal says, and nothing
// else is touched.
func TestCleanUndoes(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := filepath.Join(t.TempDir(), "wirelab")
	files := t.TempDir()
	if err := os.MkdirAll(filepath.Join(files, "ours", "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(files, "theirs")
	if err := os.WriteFile(theirs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	other := startTagged(t, Tag("deadly"))
	defer other.Wait()
	defer other.Process.Kill()
	n, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	steps := []journal.Step{
		{Op: journal.OpRemove, Path: filepath.Join(files, "ours")},
		{Op: journal.OpRemove, Path: filepath.Join(files, "never made")},
		{Op: journal.OpLink, Index: 10, Alias: Alias("dead", "a")},
		{Op: journal.OpLink, Index: 20, Alias: Alias("dead", "b")}, // another's by now
		{Op: journal.OpLink, Index: 30, Alias: Alias("dead", "c")}, // never made
		{Op: journal.OpSysctl, Path: "net/ipv4/ip_forward", Value: "0"},
		{Op: journal.OpSysctl, Path: "net/ipv4/conf/gone/forwarding", Value: "0"},
		{Op: journal.OpTagged, Tag: Tag("dead")},
		{Op: journal.OpProcess, PID: other.Process.Pid, Start: 1}, // another's by now
		{Op: journal.OpNamespace, Inode: n.ID().Inode, Cookie: n.ID().Cookie + 1},
	}
	deadRun(t, dir, "dead", steps...)
	idle := startTagged(t, Tag("dead"))
	var links []string
	var r Report
	if err := n.Do(func() (err error) {
		for i, alias := range map[int]string{10: Alias("dead", "a"), 20: "mine"} {
			v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "eth" + string(rune('a'+i)), Index: i}, PeerName: "peer" + string(rune('a'+i))}
			if err := errors.Join(netlink.LinkAdd(v), netlink.LinkSetAlias(v, alias)); err != nil {
				return err
			}
		}
		if err := set([]sysctl{{"net/ipv4/ip_forward", "1", false}}); err != nil {
			return err
		}
		if r, err = Clean(t.Context(), dir); err != nil {
			return err
		}
		left, err := netlink.LinkList()
		for _, l := range left {
			links = append(links, l.Attrs().Name)
		}
		forward, err2 := os.ReadFile("/proc/thread-self/root/proc/sys/net/ipv4/ip_forward")
		if string(forward) != "0\n" {
			t.Errorf("ip_forward is %q, want 0", forward)
		}
		return errors.Join(err, err2)
	}); err != nil {
		t.Fatal(err)
	}
	if len(r.Cleaned) != 1 || len(r.Cleaned[0].Done) != 4 {
		t.Errorf("report %+v, want four things done", r)
	}
	if slices.Contains(links, "eth"+string(rune('a'+10))) || !slices.Contains(links, "eth"+string(rune('a'+20))) {
		t.Errorf("devices %v are left", links)
	}
	isGone(t, filepath.Join(files, "ours"))
	if _, err := os.Stat(theirs); err != nil {
		t.Error(err)
	}
	if err := idle.Wait(); err == nil {
		t.Error("the tagged process ended by itself")
	}
	if _, err := journal.StartTime(other.Process.Pid); err != nil {
		t.Errorf("a process of another tag was ended: %v", err)
	}
	isGone(t, dir)
}

func isGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", path, err)
	}
}

// A step that cannot be undone keeps the journal, for another try.
func TestCleanKeepsWhatFails(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := filepath.Join(t.TempDir(), "wirelab")
	deadRun(t, dir, "dead", journal.Step{Op: "unheard-of"})
	if r, err := Clean(t.Context(), dir); err == nil || len(r.Cleaned) != 0 {
		t.Errorf("report %+v, %v, want an error", r, err)
	}
	if runs, err := journal.Runs(dir); err != nil || len(runs) != 1 {
		t.Errorf("runs %v, %v are left, want one", runs, err)
	}
}

func TestCleanNothing(t *testing.T) {
	if r, err := Clean(t.Context(), filepath.Join(t.TempDir(), "none")); err != nil || len(r.Cleaned)+len(r.Live) != 0 {
		t.Errorf("report %+v, %v", r, err)
	}
}
