package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"wirelab/experiments/library"
	"wirelab/results/store"
	"wirelab/testbed"
)

// runsRoot is the folder that results go to when no other is named.
const runsRoot = "wirelab-runs"

func newList(s Streams) *cobra.Command {
	var names bool
	cmd := &cobra.Command{
		Use:   "list [EXPERIMENT]",
		Short: "List the ready experiments, standing labs, and the result directories below " + runsRoot,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if names {
				for _, n := range library.Names() {
					fmt.Fprintln(s.Out, n)
				}
				return nil
			}
			experiment := ""
			if len(args) == 1 {
				experiment = args[0]
			}
			return list(s, experiment)
		},
	}
	cmd.Flags().BoolVar(&names, "names", false, "print the names of the ready experiments only")
	return cmd
}

func list(s Streams, experiment string) error {
	if experiment == "" {
		fmt.Fprintln(s.Out, "Ready experiments (wirelab run NAME):")
		t := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
		for _, n := range library.Names() {
			fmt.Fprintf(t, "  %s\t%s\n", n, library.Summary(n))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if labs, err := testbed.Labs(stateDir()); err == nil && len(labs) > 0 {
		fmt.Fprintln(s.Out, "\nStanding labs (wirelab exec --lab ID NODE -- COMMAND, wirelab down ID):")
		for _, l := range labs {
			fmt.Fprintf(s.Out, "  %s  %s\n", l.ID, l.Title)
		}
	}
	if _, err := os.Stat(runsRoot); err != nil {
		return nil
	}
	dirs, err := store.List(runsRoot, experiment)
	if err != nil {
		return fmt.Errorf("list results: %w", err)
	}
	if len(dirs) == 0 {
		return nil
	}
	fmt.Fprintln(s.Out, "\nResults, oldest first (wirelab show DIR):")
	t := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	for _, path := range dirs {
		fmt.Fprintf(t, "  %s\t%s\n", path, dirState(path))
	}
	return t.Flush()
}

// dirState tells in a few words what a result directory holds.
func dirState(path string) string {
	d, err := store.Open(path)
	if err != nil {
		return err.Error()
	}
	defer d.Close()
	m, err := d.Manifest()
	if err != nil {
		return err.Error()
	}
	made, valid := 0, 0
	for _, r := range m.Runs {
		if r.Status != "" {
			made++
		}
		if r.Valid {
			valid++
		}
	}
	state := fmt.Sprintf("%d of %s, %d valid", made, plural(len(m.Runs), "run"), valid)
	if !m.Complete {
		state += fmt.Sprintf("; go on with: wirelab run %s", path)
	}
	return state
}
