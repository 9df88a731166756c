package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/experiments"
	"wirelab/experiments/runner"
	"wirelab/results"
	"wirelab/results/store"
	"wirelab/testbed"
	"wirelab/testbed/instrument"
)

// runFlags are the flags of run beside those of loading.
type runFlags struct {
	load   loadFlags
	dir    string
	jobs   int
	reuse  string
	keep   bool
	strict bool
	json   bool
}

func newRun(s Streams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run FILE|NAME|DIR",
		Short: "Make every run of an experiment and write its report",
		Long: `Make every run of an experiment and write its report.

The argument is an experiment's file or folder, the name of a ready experiment,
or a result directory, whose missing runs are then made. Exit status: 0 all
good; 1 a check or claim fails (with --strict also undecided claims); 2 the file
is wrong; 3 a run failed; 4 the host is unfit or no run is valid; 5 interrupted
and cleaned up.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.load.seedSet = cmd.Flags().Changed("seed")
			return run(cmd.Context(), s, args[0], &f, changed(cmd.Flags()))
		},
	}
	addRunFlags(cmd.Flags(), &f)
	return cmd
}

func addRunFlags(set *pflag.FlagSet, f *runFlags) {
	f.load.add(set)
	set.StringVarP(&f.dir, "output", "o", "", "the result `DIR` itself; may exist if it is empty")
	set.IntVar(&f.jobs, "jobs", 1, "runs at the same time; real networks take one at a time")
	set.StringVar(&f.reuse, "reuse", "", "take runs whose text, seed and host are unchanged from an earlier result `DIR`")
	set.BoolVar(&f.keep, "keep", false, "leave the network of the last run standing until interrupted")
	set.BoolVar(&f.strict, "strict", false, "an undecided claim counts as failed")
	set.BoolVar(&f.json, "json", false, "print one JSON object instead of the table")
}

// run is the verb: prepare, make the runs, judge, report.
func run(ctx context.Context, s Streams, arg string, f *runFlags, given []string) (err error) {
	fmt.Fprintf(s.Err, "wirelab %s: %s\n", versionText(), arg)
	src, err := resolve(arg)
	if err != nil {
		return exit(exitFile, err)
	}
	j, err := prepare(s, src, f, given)
	if err != nil {
		return err
	}
	defer j.dir.Close()
	if needsNetwork(j.exp) {
		removeDead(ctx, s)
	}
	cores, release := claimCores()
	defer func() { err = errors.Join(err, release()) }()
	j.backend = software.New(software.Options{Binary: j.binary, Args: []string{"forward"}, Cores: cores, Log: s.Err})
	return j.make(ctx)
}

// job is one experiment on its way through the run verb.
type job struct {
	*loaded
	s        Streams
	f        *runFlags
	dir      *store.Dir
	manifest *results.Manifest
	runs     []*results.Run // finished, earlier ones included
	binary   string         // our own executable
	made     bool           // runs were made, not only judged
	backend  emul.Backend
}

// prepare loads the experiment, checks the host and opens the directory.
func prepare(s Streams, src source, f *runFlags, given []string) (*job, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, exit(exitHost, fmt.Errorf("find our own executable: %w", err))
	}
	j := &job{s: s, f: f, binary: binary}
	host := instrument.HostFacts()
	if src.resume != "" {
		if err := j.resume(&src, given); err != nil {
			return nil, err
		}
	}
	if j.loaded, err = load(s, src, &f.load, host, backends()); err != nil {
		return nil, err
	}
	if j.f.jobs != 1 {
		return nil, exit(exitFile, fmt.Errorf("--jobs %d: runs on real networks are made one at a time, or they would disturb each other", j.f.jobs))
	}
	if needsNetwork(j.exp) && os.Geteuid() != 0 {
		return nil, exit(exitHost, errors.New("building a network needs root: run it with sudo (wirelab plan needs no privileges; wirelab doctor tells what this host can do)"))
	}
	if err := j.openDir(given); err != nil {
		return nil, err
	}
	return j, nil
}

// needsNetwork tells whether any point has a topology.
func needsNetwork(exp *experiments.Experiment) bool {
	for _, p := range exp.Points {
		for _, r := range p.Repetitions {
			if r.Topology != nil {
				return true
			}
		}
	}
	return false
}

// resume reads an unfinished directory and takes its flags, so that the plan
// comes out the same.
func (j *job) resume(src *source, given []string) error {
	if len(given) > 0 {
		return exit(exitFile, fmt.Errorf("%s is a result directory: it goes on with its own flags; drop %s", src.resume, strings.Join(given, " ")))
	}
	dir, err := store.Open(src.resume)
	if err != nil {
		return exit(exitFile, err)
	}
	m, err := dir.Manifest()
	if err != nil {
		return exit(exitFile, err)
	}
	if err := applyFlags(j.f, m); err != nil {
		return exit(exitFile, err)
	}
	if j.runs, err = dir.Runs(); err != nil {
		fmt.Fprintf(j.s.Err, "wirelab: %v; made again\n", err)
	}
	j.dir, j.manifest = dir, m
	src.paths = []string{dir.Path() + "/" + store.ExperimentName}
	return nil
}

// applyFlags sets the flags that a manifest kept. Variables come from the
// values it recorded, so that a variable file need not exist any more.
func applyFlags(f *runFlags, m *results.Manifest) error {
	set := pflag.NewFlagSet("manifest", pflag.ContinueOnError)
	fresh := runFlags{dir: f.dir, reuse: f.reuse, keep: f.keep, strict: f.strict, json: f.json}
	addRunFlags(set, f)
	var args []string
	for _, a := range m.Flags {
		if !strings.HasPrefix(a, "--var-file=") {
			args = append(args, a)
		}
	}
	if err := set.Parse(args); err != nil {
		return fmt.Errorf("read the flags of the manifest: %w", err)
	}
	f.load.seedSet = set.Changed("seed")
	f.load.vars = nil
	for k, v := range m.Variables {
		f.load.vars = append(f.load.vars, k+"="+v)
	}
	f.dir, f.reuse, f.keep, f.strict, f.json = fresh.dir, fresh.reuse, fresh.keep, fresh.strict, fresh.json
	return nil
}

// openDir makes the result directory, or checks that a resumed one still
// belongs to the same plan.
func (j *job) openDir(given []string) error {
	if j.dir != nil {
		if j.edited() {
			return exit(exitFile, fmt.Errorf("%s/%s was edited since the first run: the others would be of another experiment; start a new directory: wirelab run %s -o DIR --reuse %s",
				j.dir.Path(), store.ExperimentName, j.dir.Path()+"/"+store.ExperimentName, j.dir.Path()))
		}
		if j.manifest.PlanHash != j.plan.Hash {
			return exit(exitFile, fmt.Errorf("%s was planned differently (another host or version): start a new directory, with --reuse %s", j.dir.Path(), j.dir.Path()))
		}
		if err := j.dir.Lock(); err != nil {
			return exit(exitHost, err)
		}
		j.dropBroken()
		return nil
	}
	dir, err := store.Create(runsRoot, j.exp.Name, store.Options{Dir: j.f.dir})
	if err != nil {
		return exit(exitHost, fmt.Errorf("make the result directory: %w", err))
	}
	j.dir = dir
	j.manifest = j.newManifest(given)
	if err := dir.WriteFile(store.ExperimentName, j.exp.Source); err != nil {
		return exit(exitHost, err)
	}
	return j.save()
}

// edited tells whether the experiment of a result directory is not the one
// that was run.
func (j *job) edited() bool {
	return j.manifest.ExperimentHash != hash(j.exp.Source)
}

// dropBroken leaves out the finished runs whose files have changed since; they
// are made again.
func (j *job) dropBroken() {
	j.runs = slices.DeleteFunc(j.runs, func(r *results.Run) bool {
		err := j.dir.Verify(r)
		if err != nil {
			fmt.Fprintf(j.s.Err, "wirelab: run %d is made again: %v\n", r.Index, err)
		}
		return err != nil
	})
}

// make makes the runs and finishes the directory, also when interrupted.
func (j *job) make(ctx context.Context) error {
	done := map[int]bool{}
	missing := map[int]bool{}
	for _, r := range store.Missing(j.manifest, j.runs) {
		missing[r.Index] = true
	}
	for _, r := range j.runs {
		done[r.Index] = !missing[r.Index]
	}
	todo := len(j.plan.Runs) - countTrue(done)
	p := newProgress(j.s.Err, todo, j.estimate())
	p.Note("%s: %s, about %s", j.exp.Title, plural(todo, "run"), (j.estimate() * time.Duration(todo)).Round(time.Second))
	r, err := j.runner(p)
	if err == nil {
		err = r.Run(ctx, j.plan, done, j.finished)
	}
	p.Close()
	status := exitOK
	switch {
	case ctx.Err() != nil:
		j.manifest.Interrupted, status = true, exitInterrupted
		next := "; no run had finished, so nothing was kept"
		if len(j.runs) > 0 {
			next = fmt.Sprintf(", %s kept; go on with: wirelab run %s", plural(len(j.runs), "finished run"), j.dir.Path())
		}
		fmt.Fprintf(j.s.Err, "wirelab: interrupted; the network is gone%s\n", next)
		err = nil
	case err != nil:
		status = exitHost
	}
	if ferr := j.finish(status); err == nil {
		err = ferr
	} else {
		err = exit(exitHost, err)
	}
	return err
}

func countTrue(m map[int]bool) int {
	n := 0
	for _, v := range m {
		if v {
			n++
		}
	}
	return n
}

// estimate guesses the wall time of a run.
func (j *job) estimate() time.Duration {
	return j.plan.Estimate() / time.Duration(max(len(j.plan.Runs), 1))
}

func (j *job) runner(p *progress) (*runner.Runner, error) {
	o := runner.Options{
		Binary: j.binary, State: stateDir(), Version: versionText(), Store: j.dir, Host: j.host,
		Progress: p, Backend: j.backend,
	}
	if j.f.reuse != "" {
		var err error
		if o.Reuse, err = store.Open(j.f.reuse); err != nil {
			return nil, fmt.Errorf("reuse: %w", err)
		}
	}
	if j.f.keep {
		o.Hold = func(ctx context.Context, bed *testbed.Testbed) error { return hold(ctx, p, j.exp.Title, bed) }
	}
	return runner.New(j.exp, o), nil
}

// hold keeps the last run's network until the user has seen enough.
func hold(ctx context.Context, p *progress, title string, bed *testbed.Testbed) error {
	p.Note("the network stands; look around with: wirelab exec NODE -- COMMAND; interrupt (ctrl-C) to remove it")
	return bed.Hold(ctx, title)
}

// finished keeps the manifest current after each run.
func (j *job) finished(r *results.Run) error {
	j.made = true
	j.runs = append(j.runs, r)
	for i := range j.manifest.Runs {
		if j.manifest.Runs[i].Index == r.Index {
			m := &j.manifest.Runs[i]
			m.Status, m.Valid, m.Reasons, m.Reused = r.Status, r.Valid, r.Reasons, r.Reused
			m.Dir = store.RunsName + "/" + r.DirName()
		}
	}
	return j.save()
}

func (j *job) save() error {
	if err := j.dir.WriteManifest(j.manifest); err != nil {
		return exit(exitHost, err)
	}
	return nil
}

// writeJSON prints one indented object.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
