package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"wirelab/experiments"
	"wirelab/results"
	"wirelab/testbed"
	"wirelab/workloads"
	"wirelab/workloads/rehearse"
)

func newDoctor(s Streams) *cobra.Command {
	var asJSON bool
	var workload string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out by trying what this host can do, and say what to do about the rest",
		Long: `Find out by trying what this host can do, and say what to do about the rest.

With --workload FILE, each workload of that experiment is played for a second
over loopback instead, and every metric that it declares is looked for: a tool
that is missing, or that prints something else than its captures expect, shows
here and not in the middle of a run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var findings []testbed.Finding
			good := "This host can run experiments on network namespaces; what is absent is not needed for that."
			bad := "of what runs on network namespaces need is missing."
			if workload != "" {
				good, bad = "Every workload gave its metrics.", "of the workloads did not work."
			}
			if workload == "" {
				findings = testbed.Doctor(cmd.Context())
			} else {
				var err error
				if findings, err = rehearseAll(cmd.Context(), s, workload); err != nil {
					return err
				}
			}
			if asJSON {
				if err := writeJSON(s.Out, findings); err != nil {
					return err
				}
			} else {
				printFindings(s, findings, good, bad)
			}
			for _, f := range findings {
				if f.Needed && !f.OK {
					return exit(exitHost, nil)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	cmd.Flags().StringVar(&workload, "workload", "", "play the workloads of an experiment (`FILE` or name) over loopback")
	return cmd
}

// rehearseAll plays each workload of an experiment's first point.
func rehearseAll(ctx context.Context, s Streams, arg string) ([]testbed.Finding, error) {
	l, err := loadArg(s, arg, &loadFlags{})
	if err != nil {
		return nil, err
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, exit(exitHost, err)
	}
	var out []testbed.Finding
	for _, w := range l.exp.Points[0].Repetitions[0].Workloads {
		f, err := rehearseOne(ctx, binary, w)
		if err != nil {
			return nil, exit(exitHost, err)
		}
		out = append(out, f)
	}
	return out, nil
}

// rehearseOne plays one workload and looks for its metrics.
func rehearseOne(ctx context.Context, binary string, w experiments.NamedWorkload) (testbed.Finding, error) {
	f := testbed.Finding{Name: w.Kind + " " + w.Name, Needed: true}
	dir, err := os.MkdirTemp("", "wirelab-doctor-")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	r, err := rehearse.Run(ctx, rehearse.Options{
		Binary: binary, Kind: w.Kind, Name: w.Name, Workload: w.Config, Seed: 1, Window: workloads.Window{End: 1}, Dir: dir,
	})
	for name, a := range r.Actors {
		if a.Error != "" {
			f.Detail = fmt.Sprintf("%s %s: %s", name, a.Status, a.Error)
		}
	}
	switch {
	case f.Detail != "":
		f.Remedy = "Make the program run by hand first; its words are above."
	case err != nil:
		f.Detail = err.Error()
	case r.Status != results.StatusOK:
		f.Detail = fmt.Sprintf("it ran, but gave no %s: %s", strings.Join(missingMetrics(w, r.Values), ", "), strings.Join(r.Notes, "; "))
		f.Remedy = "Compare what it prints with what its block captures."
	default:
		f.OK = true
		f.Detail = fmt.Sprintf("gave %d of %d metrics", len(r.Values), len(w.Config.Metrics()))
	}
	return f, nil
}

// missingMetrics lists what a workload declares and did not give.
func missingMetrics(w experiments.NamedWorkload, values map[string]float64) []string {
	var out []string
	for _, m := range w.Config.Metrics() {
		if _, ok := values[m.Name]; !ok {
			out = append(out, m.Name)
		}
	}
	return out
}

// printFindings lists what works and what does not; a remedy follows its
// finding.
func printFindings(s Streams, findings []testbed.Finding, good, bad string) {
	missing := 0
	for _, f := range findings {
		mark := "ok     "
		switch {
		case f.OK:
		case f.Needed:
			mark = "MISSING"
			missing++
		default:
			mark = "absent "
		}
		fmt.Fprintf(s.Out, "%s  %-28s %s\n", mark, f.Name, f.Detail)
		if !f.OK && f.Remedy != "" {
			fmt.Fprintf(s.Out, "         %-28s -> %s\n", "", f.Remedy)
		}
	}
	if missing == 0 {
		fmt.Fprintf(s.Out, "\n%s\n", good)
		return
	}
	fmt.Fprintf(s.Out, "\n%d %s\n", missing, bad)
}
