package lang

import (
	"testing"
	"testing/fstest"
	"time"
)

// TestShortSmoke wants --smoke to be short even where the file does not say.
func TestShortSmoke(t *testing.T) {
	const file = `
experiment "long" {
  duration    = "30s"
  warmup      = "5s"
  repetitions = 6
}
`
	opts := Options{FS: fstest.MapFS{"f.hcl": {Data: []byte(file)}}, Smoke: true}
	x, _, diags := Load([]string{"f.hcl"}, opts)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if x.Repetitions != 1 || x.Duration != 2*time.Second || x.Warmup != time.Second || !x.Smoke {
		t.Errorf("smoke makes %d repetitions of %v after %v", x.Repetitions, x.Duration, x.Warmup)
	}
	// A flag still beats it.
	opts.Repetitions = 3
	if x, _, _ = Load([]string{"f.hcl"}, opts); x == nil || x.Repetitions != 3 {
		t.Errorf("the flag does not beat smoke: %+v", x)
	}
}
