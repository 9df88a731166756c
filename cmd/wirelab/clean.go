package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"wirelab/testbed"
	"wirelab/testbed/journal"
)

func newClean(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Remove what killed runs left: namespaces, devices, processes, files",
		Long: `Remove what killed runs left, by their undo journals. Runs that live are not
touched, nor is anything that no journal names.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := testbed.Clean(cmd.Context(), stateDir())
			if state := stateDir(); state != journal.DefaultDir {
				// Cores are claimed at one place, wherever the journals are.
				err = errors.Join(err, journal.SweepLocks(journal.DefaultDir))
			}
			printCleaned(s, r)
			if err != nil {
				return exit(exitHost, fmt.Errorf("clean: %w", err))
			}
			return nil
		},
	}
}

// removeDead removes what killed runs left, before a run begins. What cannot be
// removed does not stop the run: names and addresses of runs never collide.
func removeDead(ctx context.Context, s Streams) {
	r, err := testbed.Clean(ctx, stateDir())
	for _, c := range r.Cleaned {
		if len(c.Done) > 0 {
			fmt.Fprintf(s.Err, "wirelab: removed what the killed run %s had left: %s\n", c.Run, plural(len(c.Done), "thing"))
		}
	}
	if err != nil {
		fmt.Fprintf(s.Err, "wirelab: remove what killed runs left: %v; try wirelab clean\n", err)
	}
}

// printCleaned lists what each dead run had left, and which runs live.
func printCleaned(s Streams, r testbed.Report) {
	for _, c := range r.Cleaned {
		what := "nothing was left"
		switch {
		case c.Reboot:
			what = "it was before the last boot"
		case len(c.Done) > 0:
			what = plural(len(c.Done), "thing")
		}
		fmt.Fprintf(s.Out, "run %s of %s: %s\n", c.Run, c.Created.Format(time.DateTime), what)
		for _, d := range c.Done {
			fmt.Fprintf(s.Out, "  %s\n", d)
		}
	}
	for _, run := range r.Live {
		fmt.Fprintf(s.Out, "run %s lives and was left alone\n", run)
	}
	if len(r.Cleaned) == 0 {
		fmt.Fprintln(s.Out, "nothing to clean")
	}
}
