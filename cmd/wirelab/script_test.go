package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"wirelab/testbed"
)

// asMain makes this test binary behave as wirelab in a child process.
const asMain = "WIRELAB_TEST_AS_MAIN"

// TestMain lets this test binary be wirelab itself: for scripts, and for the
// actors and forwarders that the runs of scripts start.
func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		os.Exit(Main())
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "actor", "forward", "lab", "node":
			os.Exit(Main())
		}
	}
	testscript.Main(m, map[string]func(){"wirelab": func() { os.Exit(Main()) }})
}

// TestScripts runs testdata/script/*.txtar: one behaviour of the command each.
// The condition [netns] holds where networks can be built (root on Linux).
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			// Networks of its own: neither a lab of the user's nor another
			// script is in the way, and nothing outlives the script.
			state := filepath.Join(env.WorkDir, "state")
			env.Setenv("WIRELAB_STATE", state)
			env.Defer(func() { takeDown(t, state) })
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "netns" {
				return os.Geteuid() == 0, nil
			}
			return false, nil
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"waitfor": cmdWaitfor},
		RequireExplicitExec: true,
	})
}

// takeDown removes the labs that a script left standing.
func takeDown(t *testing.T, state string) {
	labs, err := testbed.Labs(state)
	if err != nil {
		t.Error(err)
	}
	for _, lab := range labs {
		if err := lab.Down(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// cmdWaitfor polls until a file exists: waitfor FILE.
func cmdWaitfor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: waitfor FILE")
	}
	path := ts.MkAbs(args[0])
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if matches, _ := filepath.Glob(path); len(matches) > 0 {
			return
		}
	}
	ts.Fatalf("%s did not appear within a minute", args[0])
}
