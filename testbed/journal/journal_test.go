package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
)

var someSteps = []Step{
	{Op: OpRemove, Path: "/run/x"},
	{Op: OpNamespace, Name: "left1", Inode: 4026532000, Cookie: 7},
	{Op: OpProcess, Name: "forwarder", PID: 12, Start: 345},
	{Op: OpLink, Index: 3, Alias: "wirelab:a:b"},
	{Op: OpSysctl, Path: "net/ipv4/x", Value: "1"},
	{Op: OpTagged, Tag: "WIRELAB_RUN=a"},
}

// begin creates a journal with steps.
func begin(t *testing.T, base, run string) *Journal {
	t.Helper()
	j, err := Create(base, run, "v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Add(someSteps[:2]...); err != nil {
		t.Fatal(err)
	}
	for _, s := range someSteps[2:] {
		if err := j.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// die gives up a journal's lock as the end of the process would.
func die(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
}

func adopt(t *testing.T, base, run string) *Dead {
	t.Helper()
	d, err := Adopt(base, run)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func missing(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", path, err)
	}
}

func TestStepsSurviveTheirOwner(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	die(t, begin(t, base, "a"))
	d := adopt(t, base, "a")
	if !reflect.DeepEqual(d.Steps, someSteps) {
		t.Errorf("steps %+v, want %+v", d.Steps, someSteps)
	}
	if h := d.Header; h.Run != "a" || h.Version != "v1" || h.PID != os.Getpid() || h.Boot == "" || h.Start == 0 || d.Torn != 0 || d.Reboot {
		t.Errorf("header %+v, %d torn, reboot %v", h, d.Torn, d.Reboot)
	}
	// Whoever has adopted it keeps others away.
	if _, err := Adopt(base, "a"); !errors.Is(err, ErrLive) {
		t.Errorf("adopted twice: %v", err)
	}
	if err := os.Mkdir(filepath.Join(d.Dir(), "ns"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	missing(t, base)
}

// Two replays at the same time: the later one waits for the earlier, and finds
// that there is nothing left.
func TestReplaysDoNotMeet(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	j := begin(t, base, "a")
	die(t, j)
	spoil(t, j, func(s string) string { // an owner that is no more
		return strings.Replace(s, fmt.Sprintf(`"pid":%d,`, os.Getpid()), fmt.Sprintf(`"pid":%d,`, 1<<30), 1)
	})
	d := adopt(t, base, "a")
	second := make(chan error, 1)
	go func() {
		_, err := Adopt(base, "a")
		second <- err
	}()
	// Meanwhile other runs come and go.
	if err := begin(t, base, "b").Remove(); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, ErrGone) {
		t.Errorf("the second replay: %v", err)
	}
	missing(t, base)
}

func TestReleasedJournalsAreReplayedAgain(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	die(t, begin(t, base, "a"))
	for range 2 {
		d := adopt(t, base, "a")
		if len(d.Steps) != len(someSteps) {
			t.Errorf("%d steps, want %d", len(d.Steps), len(someSteps))
		}
		if err := d.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLiveRunsAreLeftAlone(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	j := begin(t, base, "a")
	if !Live(base, "a") {
		t.Error("the run is not live")
	}
	if _, err := Adopt(base, "a"); !errors.Is(err, ErrLive) {
		t.Errorf("adopt a live run: %v", err)
	}
	if _, err := Create(base, "a", "v1"); !errors.Is(err, ErrExists) {
		t.Errorf("create it again: %v", err)
	}
	if err := j.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := j.Remove(); err != nil {
		t.Errorf("second remove: %v", err)
	}
	if err := j.Add(Step{Op: OpRemove}); err == nil {
		t.Error("a step was added to a removed journal")
	}
	if _, err := Adopt(base, "a"); !errors.Is(err, ErrGone) {
		t.Errorf("adopt a run that is gone: %v", err)
	}
	missing(t, base)
}

// spoil rewrites the file of a dead journal.
func spoil(t *testing.T, j *Journal, change func(string) string) {
	t.Helper()
	path := filepath.Join(j.Dir(), fileName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(change(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTornJournals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(string) string
		steps  int
		torn   int
	}{
		"tail":    {func(s string) string { return s[:len(s)-5] }, len(someSteps) - 1, 1},
		"newline": {func(s string) string { return strings.TrimSuffix(s, "\n") }, len(someSteps), 0},
		"header":  {func(s string) string { return s[:20] }, 0, 1},
		"empty":   {func(string) string { return "" }, 0, 0},
		"garbage": {func(s string) string { return s + "\x00\xff{}\n[]\n" }, len(someSteps), 2},
	} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(t.TempDir(), "wirelab")
			j := begin(t, base, "a")
			die(t, j)
			spoil(t, j, c.change)
			d := adopt(t, base, "a")
			if len(d.Steps) != c.steps || d.Torn != c.torn || d.Reboot {
				t.Errorf("%d steps, %d torn, reboot %v; want %d, %d", len(d.Steps), d.Torn, d.Reboot, c.steps, c.torn)
			}
			if err := d.Remove(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFailedWriteLeavesNoPartOfALine(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	j := begin(t, base, "a")
	const part = `{"op":"rem`
	if _, err := j.file.WriteString(part); err != nil {
		t.Fatal(err)
	}
	if err := j.cut(len(part)); err != nil {
		t.Fatal(err)
	}
	if err := j.Add(Step{Op: OpTagged, Tag: "x"}); err != nil {
		t.Fatal(err)
	}
	die(t, j)
	d := adopt(t, base, "a")
	if n := len(d.Steps); n != len(someSteps)+1 || d.Steps[n-1].Tag != "x" || d.Torn != 0 {
		t.Errorf("%d torn, steps %+v", d.Torn, d.Steps)
	}
	if err := d.Remove(); err != nil {
		t.Error(err)
	}
}

func TestDirectoryWithoutJournal(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	if err := os.MkdirAll(filepath.Join(base, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := adopt(t, base, "a").Remove(); err != nil {
		t.Fatal(err)
	}
	missing(t, base)
}

func TestEarlierBoot(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	j := begin(t, base, "a")
	die(t, j)
	boot, err := BootID()
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, j, func(s string) string { return strings.Replace(s, boot, "another", 1) })
	if d := adopt(t, base, "a"); !d.Reboot {
		t.Error("it is taken for one of this boot")
	}
}

func TestOtherSchema(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	j := begin(t, base, "a")
	die(t, j)
	spoil(t, j, func(s string) string { return strings.Replace(s, schema, "wirelab/journal/9", 1) })
	if _, err := Adopt(base, "a"); err == nil || !strings.Contains(err.Error(), "v1") {
		t.Errorf("error %v, want one that names the version", err)
	}
}

func TestRunIDs(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	for _, id := range []string{"", ".", "..", "a/b", "-a", "a b", strings.Repeat("x", 65), "locks"} {
		if j, err := Create(base, id, ""); err == nil {
			t.Errorf("run id %q is accepted", id)
			j.Remove()
		}
	}
	missing(t, base)
	if runs, err := Runs(base); err != nil || len(runs) != 0 {
		t.Errorf("runs of no directory: %v, %v", runs, err)
	}
}

// Runs come and go at the same time; the directory between them, too.
func TestRunsAtTheSameTime(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 50 {
				j, err := Create(base, fmt.Sprintf("r%d-%d", i, k), "")
				if err != nil {
					t.Error(err)
					return
				}
				if err := j.Add(Step{Op: OpRemove}); err != nil {
					t.Error(err)
				}
				if err := j.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		runs, err := Runs(base)
		if err != nil {
			t.Error(err)
		}
		for _, r := range runs {
			Live(base, r) // looking disturbs nobody
			if d, err := Adopt(base, r); err == nil {
				t.Errorf("live run %s was adopted", r)
				d.Release()
			}
		}
		select {
		case <-done:
			missing(t, base)
			return
		default:
		}
	}
}

func TestLockName(t *testing.T) {
	base := filepath.Join(t.TempDir(), "wirelab")
	l, err := LockName(base, "nic-eth0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockName(base, "nic-eth0"); !errors.Is(err, ErrLive) {
		t.Errorf("locked twice: %v", err)
	}
	other, err := LockName(base, "nic-eth1")
	if err != nil {
		t.Fatal(err)
	}
	if runs, err := Runs(base); err != nil || len(runs) != 0 {
		t.Errorf("locks are taken for the runs %v, %v", runs, err)
	}
	if err := l.Unlock(); err != nil {
		t.Error(err)
	}
	if l, err = LockName(base, "nic-eth0"); err != nil {
		t.Fatal(err)
	}
	// A crash leaves the file without the lock.
	if err := l.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := SweepLocks(base); err != nil {
		t.Error(err)
	}
	missing(t, l.path)
	if err := other.Unlock(); err != nil {
		t.Error(err)
	}
	missing(t, base)
	for _, name := range []string{"", "..", "a/b"} {
		if _, err := LockName(base, name); err == nil {
			t.Errorf("name %q is accepted", name)
		}
	}
}

func TestStartTime(t *testing.T) {
	a, err := StartTime(os.Getpid())
	if err != nil || a == 0 {
		t.Errorf("own start time %d, %v", a, err)
	}
	if _, err := StartTime(1 << 30); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("start time of no process: %v", err)
	}
}
