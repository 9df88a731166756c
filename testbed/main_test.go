package testbed

import (
	"context"
	"fmt"
	"os"
	"testing"

	"wirelab/emul/software"
)

// TestMain lets the test binary be the forwarding process of the software
// backend, and the processes of the tests that kill some.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if role := roles[os.Args[1]]; role != nil {
			if err := role(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

// roles are what the test binary does when its first argument says so.
var roles = map[string]func(args []string) error{
	"forward": func([]string) error { return software.ForwardMain(context.Background()) },
}
