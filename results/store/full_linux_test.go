package store_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"wirelab/results"
	"wirelab/results/store"
)

// inTinyMount tells the re-executed test that it may mount at its value.
const inTinyMount = "WIRELAB_TEST_TINY_MOUNT"

// TestDiskFull runs itself again in a mount namespace of its own, where it may
// mount a tiny tmpfs that nobody else sees and that ends with the process.
func TestDiskFull(t *testing.T) {
	if dir := os.Getenv(inTinyMount); dir != "" {
		onTinyDisk(t, dir)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestDiskFull$", "-test.v")
	cmd.Env = append(os.Environ(), inTinyMount+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Skipf("no mount namespace of our own: %v", err)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("no tmpfs:\n%s", out)
	}
	if err != nil {
		t.Fatalf("on a full disk: %v\n%s", err, out)
	}
}

func onTinyDisk(t *testing.T, root string) {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Skipf("private mounts: %v", err)
	}
	if err := syscall.Mount("tmpfs", root, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mount tmpfs: %v", err)
	}
	d, err := store.Create(root, "full", stamp)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.WriteManifest(&results.Manifest{Experiment: "full"}); err != nil {
		t.Fatal(err)
	}
	commit(t, d, sampleRun(0, point(1), 0))

	w, err := d.BeginRun(1, point(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.Path(), "actors", "big.log"), make([]byte, 160<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 200_000 { // does not compress below what is left
		w.Sample(results.Sample{Actor: "a", Metric: "m", Time: float64(i), Value: float64(i*7919%100003) * 1.0001})
	}
	err = w.Commit(sampleRun(1, point(1), 1))
	var full *store.FullError
	if !errors.As(err, &full) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		t.Fatalf("Commit on a full disk: %v; want a FullError that says what to do", err)
	}
	entries, err := os.ReadDir(filepath.Join(d.Path(), store.RunsName))
	if err != nil || len(entries) != 1 {
		t.Errorf("runs after the failure: %v, %v; want the finished one only", entries, err)
	}

	before, err := d.ReadFile(store.ManifestName)
	if err != nil {
		t.Fatal(err)
	}
	big := &results.Manifest{Experiment: "full", Notes: []string{strings.Repeat("x", 400<<10)}}
	if err := d.WriteManifest(big); !errors.As(err, &full) {
		t.Errorf("WriteManifest on a full disk: %v; want a FullError", err)
	}
	if after, err := d.ReadFile(store.ManifestName); err != nil || string(after) != string(before) {
		t.Errorf("the manifest has changed or is gone: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(d.Path(), ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("half-written files left: %v, %v", left, err)
	}
	runs, err := d.Runs()
	if err != nil || len(runs) != 1 {
		t.Errorf("runs = %v, %v; want the finished one", runs, err)
	}
}
