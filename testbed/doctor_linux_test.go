package testbed

import (
	"testing"
)

func TestDoctor(t *testing.T) {
	for _, f := range Doctor(t.Context()) {
		t.Logf("%+v", f)
	}
}
