package testbed

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/testbed/journal"
)

func init() { roles["owner"] = owner }

// owner holds a lab in the directory and with the id of its arguments.
func owner(args []string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if len(args) > 2 {
		return errors.New(args[2])
	}
	j, err := journal.Create(args[0], args[1], "test")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Remove()) }()
	topo := impaired(chainOf(3), emul.Impairment{Delay: time.Millisecond})
	tb, err := Up(ctx, topo, Options{Journal: j, Backend: software.New(software.Options{})})
	if err != nil {
		return err
	}
	return errors.Join(tb.Hold(ctx, "a test"), tb.Close())
}

func startLab(t *testing.T, dir, id string) *Lab {
	t.Helper()
	needRoot(t)
	var out bytes.Buffer
	cmd := exec.Command("/proc/self/exe", "owner", dir, id)
	cmd.Stderr = &out
	cmd.WaitDelay = time.Second
	l, err := StartOwner(t.Context(), cmd, dir, id)
	if err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory is left: %v", err)
		}
	})
	return l
}

func TestLab(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/wirelab"
	l := startLab(t, dir, "one")
	if got, err := Attach(dir, ""); err != nil || got.ID != "one" || len(got.Nodes) != 3 {
		t.Fatalf("attach: %+v, %v", got, err)
	}
	if _, err := Attach(dir, "two"); err == nil || !strings.Contains(err.Error(), "one") {
		t.Errorf("attach to a lab that is not: %v", err)
	}
	// A program in the node sees its device and the lab's variables.
	cmd := exec.Command("/bin/sh", "-c", "grep -c l1 /proc/net/dev; echo $WIRELAB_RUN $WIRELAB_NODE")
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := l.Start("n0", cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != "1\none n0\n" {
		t.Errorf("the program in the node printed %q, %v", &out, err)
	}
	if err := l.Start("nobody", exec.Command("/bin/true")); err == nil {
		t.Error("a program was started in a node that is not")
	}
	// What runs in a node ends with the lab.
	idle := exec.Command("/proc/self/exe", "idle")
	if err := l.Start("n2", idle); err != nil {
		t.Fatal(err)
	}
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := idle.Wait(); err == nil {
		t.Error("the program ended by itself")
	}
	if _, err := Attach(dir, "one"); err == nil {
		t.Error("the lab is still there")
	}
}

func TestLabOwnerKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/wirelab"
	l := startLab(t, dir, "one")
	idle := exec.Command("/proc/self/exe", "idle")
	if err := l.Start("n1", idle); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(l.Owner, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for journal.Live(dir, "one") {
		time.Sleep(time.Millisecond)
	}
	if _, err := Attach(dir, "one"); err == nil {
		t.Error("a lab whose owner was killed can be attached to")
	}
	r, err := Clean(t.Context(), dir)
	if err != nil || len(r.Cleaned) != 1 {
		t.Errorf("clean: %+v, %v", r, err)
	}
	if err := idle.Wait(); err == nil {
		t.Error("the program in the node ended by itself")
	}
}

func TestLabOwnerFails(t *testing.T) {
	needRoot(t)
	dir := t.TempDir() + "/wirelab"
	_, err := StartOwner(t.Context(), exec.Command("/proc/self/exe", "owner", dir, "one", "on purpose"), dir, "one")
	if err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Errorf("error %v, want exit status 1", err)
	}
}

// A live run is not touched, and two at the same time do not meet.
func TestCleanLeavesLiveRunsAlone(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := t.TempDir() + "/wirelab"
	var beds []*Testbed
	for _, id := range []string{"one", "two"} {
		j, err := journal.Create(dir, id, "test")
		if err != nil {
			t.Fatal(err)
		}
		defer j.Remove()
		tb, err := Up(t.Context(), chainOf(3), Options{Journal: j})
		if err != nil {
			t.Fatal(err)
		}
		defer tb.Close()
		beds = append(beds, tb)
	}
	if _, err := journal.Create(dir, "one", "test"); !errors.Is(err, journal.ErrExists) {
		t.Errorf("a second run of the same id: %v", err)
	}
	r, err := Clean(t.Context(), dir)
	if err != nil || len(r.Cleaned) != 0 || len(r.Live) != 2 {
		t.Fatalf("clean: %+v, %v", r, err)
	}
	if err := beds[0].Close(); err != nil {
		t.Fatal(err)
	}
	everyPair(t, beds[1])
}
