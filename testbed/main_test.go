package testbed

import (
	"context"
	"fmt"
	"os"
	"testing"

	"wirelab/emul/software"
)

// TestMain lets the test binary be the forwarding process of the software
// backend.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "forward" {
		if err := software.ForwardMain(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
