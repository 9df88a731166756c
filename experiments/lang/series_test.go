package lang

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestSeries wants an unknown series of a time figure told with the known ones.
func TestSeries(t *testing.T) {
	const file = `
experiment "series" {
  duration = "1s"
}

node "a" {}
node "b" {}

link "l" {
  between = ["a", "b"]
}

workload "ping" "probe" {
  from = "a"
  to   = "b"
}

figure "f" {
  kind = "time"
  y    = ["probe.SERIES"]
}
`
	load := func(series string) Diagnostics {
		source := strings.Replace(file, "SERIES", series, 1)
		_, _, diags := Load([]string{"f.hcl"}, Options{FS: fstest.MapFS{"f.hcl": {Data: []byte(source)}}})
		return diags
	}
	if diags := load("rtt_s"); diags.HasErrors() {
		t.Errorf("a declared series: %v", diags)
	}
	diags := load("rtt_ms")
	if len(diags) != 1 || diags[0].Line != 20 || !strings.Contains(diags[0].Detail, "rtt_s") {
		t.Errorf("an unknown series: %v, want one at line 20 that names rtt_s", diags)
	}
}
