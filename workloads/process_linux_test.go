package workloads_test

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"wirelab/workloads"
)

// group starts a script as the leader of a process group and returns the number
// that it prints.
func group(t *testing.T, script string) (*exec.Cmd, int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return cmd, pid
}

func TestKillGroupKillsWhatTheLeaderLeft(t *testing.T) {
	t.Parallel()
	cmd, left := group(t, "sleep 1000 >/dev/null & echo $!")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	workloads.KillGroup(cmd.Process.Pid)
	for deadline := time.Now().Add(60 * time.Second); running(left); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(left, syscall.SIGKILL)
			t.Fatal("a process of the group lives on")
		}
	}
}

// A number that a process has does not belong to a group whose leader is gone.
func TestKillGroupSparesAReusedNumber(t *testing.T) {
	t.Parallel()
	cmd, pid := group(t, "echo $$; exec sleep 1000")
	workloads.KillGroup(pid)
	if !running(pid) {
		t.Error("a living process was killed")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
}
