package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets this test binary be wirelab itself: for scripts, and for the
// actors and forwarders that the runs of scripts start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "actor" || os.Args[1] == "forward" || os.Args[1] == "lab") {
		os.Exit(Main())
	}
	testscript.Main(m, map[string]func(){"wirelab": func() { os.Exit(Main()) }})
}

// TestScripts runs testdata/script/*.txtar: one behaviour of the command each.
// The condition [netns] holds where networks can be built (root on Linux).
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Condition: func(cond string) (bool, error) {
			if cond == "netns" {
				return os.Geteuid() == 0, nil
			}
			return false, nil
		},
		RequireExplicitExec: true,
	})
}
