package runner_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// A server that never becomes ready says so itself, and names a log that is
// still there when the run is finished.
func TestNeverReadyNamesItsLog(t *testing.T) {
	m := makeRuns(t, `
experiment "never" {
  duration    = "100ms"
  repetitions = 1
}
workload "command" "server" {
  on     = "host"
  server = true
  argv   = ["sh", "-c", "echo last words; sleep 60"]

  ready {
    regex   = "never"
    timeout = "300ms"
  }
}
`+tolerant)
	if m.err != nil || len(m.runs) != 1 {
		t.Fatalf("%d runs, %v", len(m.runs), m.err)
	}
	said := m.runs[0].Error
	found := regexp.MustCompile(`\(log: (.*)\)`).FindStringSubmatch(said)
	if found == nil || !strings.Contains(said, "not ready within 300ms") {
		t.Fatalf("the run says %q", said)
	}
	if text, err := os.ReadFile(found[1]); err != nil || !strings.Contains(string(text), "last words") {
		t.Errorf("the log it names: %q, %v", text, err)
	}
}
