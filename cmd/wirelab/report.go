package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"wirelab/results"
	"wirelab/results/claim"
	"wirelab/results/report"
	"wirelab/results/store"
)

func newReport(s Streams) *cobra.Command {
	var strict, asJSON bool
	cmd := &cobra.Command{
		Use:   "report DIR",
		Short: "Judge a result directory again and write its report anew",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return rereport(s, args[0], runFlags{strict: strict, json: asJSON})
		},
	}
	cmd.Flags().BoolVar(&strict, "strict", false, "an undecided claim counts as failed")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object instead of the table")
	return cmd
}

// rereport evaluates the stored experiment over the stored runs.
func rereport(s Streams, path string, f runFlags) error {
	j, err := stored(s, path, f)
	if err != nil {
		return err
	}
	defer j.dir.Close()
	if err := j.dir.Lock(); err != nil {
		return exit(exitHost, err)
	}
	if j.edited() {
		fmt.Fprintf(s.Err, "wirelab: %s/%s was edited since the runs: checks, claims and figures are those of the edited text\n",
			j.dir.Path(), store.ExperimentName)
	}
	for _, r := range j.runs {
		if err := j.dir.Verify(r); err != nil {
			fmt.Fprintf(s.Err, "wirelab: %v\n", err)
		}
		j.exp.Judge(r)
	}
	return j.finish(exitOK)
}

// stored opens a result directory with the experiment that made it. Facts of
// the host are those of the manifest: a report does not depend on where it is
// written.
func stored(s Streams, path string, f runFlags) (*job, error) {
	src := source{arg: path, resume: path}
	j := &job{s: s, f: &f}
	if err := j.resume(&src, nil); err != nil {
		return nil, err
	}
	var err error
	if j.loaded, err = load(s, src, &f.load, j.manifest.Host, nil); err != nil {
		return nil, err
	}
	return j, nil
}

func newShow(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "show DIR [RUN]",
		Short: "Print the table of a result directory, or everything about one run",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			j, err := stored(s, args[0], runFlags{})
			if err != nil {
				return err
			}
			defer j.dir.Close()
			if len(args) == 1 {
				return j.show()
			}
			return j.showRun(args[1])
		},
	}
}

// show prints the table; nothing is written.
func (j *job) show() error {
	claims := claim.Judge(j.exp.Claims, j.runs, j.exp.Seed, claim.Options{Smoke: j.exp.Smoke, SmokeClaims: j.exp.SmokeClaims})
	return report.Text(j.s.Out, report.Input{
		Manifest: j.manifest, Runs: j.runs, Claims: claims, Figures: j.exp.Figures, Experiment: j.exp.Source,
		Dir: j.dir.Path(), Command: j.arg,
	})
}

// showRun prints one run: its verdict, values, actors and links.
func (j *job) showRun(number string) error {
	index, err := strconv.Atoi(number)
	for _, r := range j.runs {
		if err != nil || r.Index != index {
			continue
		}
		w := j.s.Out
		fmt.Fprintf(w, "run %d  %s  repetition %d  seed %d  %s\n", r.Index, r.Point.ID, r.Repetition, r.Seed, r.Status)
		if r.Error != "" {
			fmt.Fprintf(w, "error: %s\n", results.Printable(r.Error))
		}
		for _, reason := range r.Reasons {
			fmt.Fprintf(w, "invalid: %s\n", results.Printable(reason))
		}
		for _, note := range r.Notes {
			fmt.Fprintf(w, "note: %s\n", results.Printable(note))
		}
		for _, v := range r.Values {
			fmt.Fprintf(w, "  %-56s %s\n", v.Metric, results.FormatValue(v.Value, v.Unit))
		}
		for _, a := range r.Actors {
			fmt.Fprintf(w, "actor %s on %s: %s, %.2f s of CPU, log %s\n", a.Name, a.Node, a.Status, a.CPUSeconds,
				j.dir.Path()+"/"+store.RunsName+"/"+r.DirName()+"/"+a.Log)
		}
		return nil
	}
	return exit(exitFile, fmt.Errorf("%s has no finished run %s; wirelab show %s lists what there is", j.dir.Path(), number, j.dir.Path()))
}
