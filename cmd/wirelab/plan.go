package main

import (
	"errors"

	"github.com/spf13/cobra"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/testbed/instrument"
)

func newPlan(s Streams) *cobra.Command {
	var f loadFlags
	var asJSON, graph bool
	cmd := &cobra.Command{
		Use:   "plan FILE|NAME|DIR",
		Short: "Show every run and link with its numbers; build nothing",
		Long: `Show every run and link with its numbers, and every mistake of the file with
its line and a remedy. Nothing is built and no privileges are needed.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && graph {
				return exit(exitFile, errors.New("--json and --graph are two forms of output: choose one"))
			}
			f.seedSet = cmd.Flags().Changed("seed")
			l, err := loadArg(s, args[0], &f)
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				return l.plan.WriteJSON(s.Out)
			case graph:
				return l.plan.WriteGraph(s.Out)
			}
			return l.plan.WriteText(s.Out)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&graph, "graph", false, "print the topology in the DOT language of Graphviz")
	return cmd
}

func newValidate(s Streams) *cobra.Command {
	var f loadFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate FILE|NAME|DIR...",
		Short: "Find every mistake of experiments; print nothing when there is none",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.seedSet = cmd.Flags().Changed("seed")
			var errs []error
			for _, arg := range args {
				if asJSON {
					errs = append(errs, validateJSON(s, arg, &f))
					continue
				}
				_, err := loadArg(s, arg, &f)
				errs = append(errs, err)
			}
			return worst(errs)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the diagnostics of each argument as a JSON array")
	return cmd
}

// validateJSON prints the diagnostics for an editor or a CI job.
func validateJSON(s Streams, arg string, f *loadFlags) error {
	src, err := resolve(arg)
	if err != nil {
		return exit(exitFile, err)
	}
	_, diags, err := read(src, f, instrument.HostFacts(), backends())
	if err != nil {
		return err
	}
	if err := diags.WriteJSON(s.Out); err != nil {
		return err
	}
	if diags.HasErrors() {
		return exit(exitFile, nil)
	}
	return nil
}

// worst returns the first error: all of a verb's arguments were tried.
func worst(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// backends are those that links may ask for. None of them is started.
func backends() []emul.Backend { return []emul.Backend{software.New(software.Options{})} }

// loadArg resolves, reads and plans an argument, without a network in mind. A
// result directory stands for the experiment that it holds.
func loadArg(s Streams, arg string, f *loadFlags) (*loaded, error) {
	src, err := resolve(arg)
	if err != nil {
		return nil, exit(exitFile, err)
	}
	if src.resume != "" {
		j, err := stored(s, arg, runFlags{})
		if err != nil {
			return nil, err
		}
		return j.loaded, j.dir.Close()
	}
	return load(s, src, f, instrument.HostFacts(), backends())
}
