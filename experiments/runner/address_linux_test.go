package runner_test

import (
	"strings"
	"testing"
)

// Below an MTU of 1280 a link carries no IPv6 (RFC 8200, section 5): who asks
// for it is told so.
func TestNoIPv6OverASmallMTU(t *testing.T) {
	m := makeRuns(t, `
experiment "small" {
  duration    = "100ms"
  repetitions = 1
}
node "a" {}
node "b" {}
link "l" {
  between = ["a", "b"]
  mtu     = 1279
}
workload "ping" "p" {
  from = "a"
  to   = "b"
  ip   = "6"
}
`+tolerant)
	if m.err != nil || len(m.runs) != 1 {
		t.Fatalf("%d runs, %v", len(m.runs), m.err)
	}
	if said := m.runs[0].Error; !strings.Contains(said, `node "b" has no IPv6 address`) {
		t.Errorf("the run says %q", said)
	}
}
