package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"wirelab/results"
	"wirelab/testbed/journal"
)

// Streams are the command's input and outputs.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Exit statuses, the first that applies: interrupted and cleaned up; the file
// is wrong; the host is unfit or no run is valid; a run failed; a check or
// claim fails.
const (
	exitOK          = 0
	exitJudgement   = 1
	exitFile        = 2
	exitRunFailed   = 3
	exitHost        = 4
	exitInterrupted = 5
)

// exitError carries an exit status with what to print; an empty error prints
// nothing (the verb already said it).
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit returns an error that ends the command with the status.
func exit(status int, err error) error { return &exitError{status, err} }

// Run executes one command line and returns its exit status.
func Run(ctx context.Context, args []string, s Streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	status := exitFile // a wrong command line counts as a wrong file
	var e *exitError
	if errors.As(err, &e) {
		status = e.status
	}
	switch {
	case errors.Is(err, syscall.EPIPE):
		return status // who read our output has gone
	case errors.Is(err, syscall.ENOSPC):
		status = exitHost
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(s.Err, "wirelab: %s\n", results.Printable(text))
	}
	return status
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "wirelab",
		Short:         "Network experiments from one file: build, impair, drive, measure, report",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see `%s --help`", err, cmd.CommandPath())
	})
	root.AddCommand(
		newInit(s), newFmt(s), newValidate(s), newPlan(s), newRun(s),
		newReport(s), newList(s), newShow(s), newExplain(s),
		newUp(s), newExec(s), newDown(s),
		newDoctor(s), newClean(s), newVersion(s),
		newActor(s), newForward(s), newLab(s), newNode(s),
	)
	root.AddCommand(plannedVerbs()...)
	return root
}

// plannedVerbs say in which form a verb of the design will come, so that a
// script learns it is too early, and not that it mistyped.
func plannedVerbs() []*cobra.Command {
	var out []*cobra.Command
	for _, v := range []struct{ name, does string }{
		{"compare", "lay two result directories side by side, with significance and effect size"},
		{"reproduce", "re-run a result directory from its manifest and compare"},
		{"bundle", "pack a result directory for publication"},
		{"vm", "run an experiment in a virtual machine with a full kernel"},
		{"tune", "adjust TCP from user space by rules"},
		{"flowmon", "watch the flows of a link or a capture file"},
		{"serve", "show result directories in a browser"},
	} {
		out = append(out, &cobra.Command{
			Use:                v.name,
			Short:              "(not in this version) " + v.does,
			DisableFlagParsing: true,
			Hidden:             true,
			RunE: func(*cobra.Command, []string) error {
				return exit(exitFile, fmt.Errorf("%s is not in this version; it will %s", v.name, v.does))
			},
		})
	}
	return out
}

// terminal returns the width of w if it is a terminal.
func terminal(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 20 {
		width = 80
	}
	return width, true
}

// colored tells whether to colour what goes to w.
func colored(w io.Writer) bool {
	_, ok := terminal(w)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// stateDir is the folder of the undo journals of running networks. The
// environment may move it, for tests and for containers without /run.
func stateDir() string { return cmp.Or(os.Getenv("WIRELAB_STATE"), journal.DefaultDir) }

// plural returns "1 run", "2 runs".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	if strings.HasSuffix(word, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(word, "y"))
	}
	return fmt.Sprintf("%d %ss", n, word)
}
