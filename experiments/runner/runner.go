// Package runner makes the runs of a plan: it joins testbed, emul, workloads
// and results.
//
// For each run it builds the network, proves once per point that every link
// does what was asked (calibration), starts the actors (servers first), arms
// the emulation, releases all actors at one instant T0, measures, collects,
// tears down, and commits the run to the store. A run whose emulation or host
// was not what was asked is repeated up to twice; a run that failed is recorded
// with its last words and does not end the experiment.
package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"wirelab/emul"
	"wirelab/experiments"
	"wirelab/experiments/plan"
	"wirelab/results"
	"wirelab/results/store"
	"wirelab/testbed"
	"wirelab/testbed/instrument"
)

// Progress is told what happens; the run does not wait for it.
type Progress interface {
	RunStarted(point experiments.Point, repetition, attempt int)
	Phase(name string)
	// RunAgain says that an attempt was not valid and is made again.
	RunAgain(run *results.Run)
	RunDone(run *results.Run)
}

// Options are what a Runner needs beside the plan.
type Options struct {
	// Binary is our own executable: actors and the forwarder are it,
	// re-executed.
	Binary string
	// State is the folder of undo journals; "" means the usual one.
	State string
	// Version of the program, for the undo journal.
	Version string
	Store   *store.Dir
	// Reuse, if not nil, is an earlier directory to take equal runs from.
	Reuse    *store.Dir
	Host     results.Host
	Progress Progress
	// Attempts bounds how often a run is made until it is valid; 0 means 3.
	Attempts int
	// Hold, if not nil, is called with the network of the last run while it
	// stands (--keep); it returns when the network may go.
	Hold func(ctx context.Context, bed *testbed.Testbed) error
	// Backend enforces impairments; nil if no link needs one.
	Backend emul.Backend
}

// Runner makes the runs of one plan.
type Runner struct {
	opt Options
	exp *experiments.Experiment
	// calibrated holds the calibration of each point and link, made once.
	calibrated map[string]map[string]results.Calibration
	// taken lists runs of Reuse that were taken already.
	taken []int
}

// New returns a runner for the experiment.
func New(exp *experiments.Experiment, opt Options) *Runner {
	if opt.Attempts <= 0 {
		opt.Attempts = 3
	}
	return &Runner{opt: opt, exp: exp, calibrated: map[string]map[string]results.Calibration{}}
}

// Run makes every run of the plan that done does not hold yet, in order, and
// calls finished after each was committed. It returns early with ctx's error
// when interrupted: the run under way is undone and not kept. Other errors are
// those of the store (a full disk) and of a host that lacks what the file
// requires ([instrument.ErrRequired]): a run that fails is a result, not an
// error.
func (r *Runner) Run(ctx context.Context, p *plan.Plan, done map[int]bool, finished func(*results.Run) error) error {
	for i, pr := range p.Runs {
		if done[pr.Index] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		run, err := r.reuse(pr)
		if err != nil {
			return err
		}
		if run == nil {
			if run, err = r.attempts(ctx, pr, i == len(p.Runs)-1); err != nil {
				return err
			}
		}
		r.opt.Progress.RunDone(run)
		if err := finished(run); err != nil {
			return err
		}
	}
	return nil
}

// attempts makes one run, again while it is invalid and attempts are left.
func (r *Runner) attempts(ctx context.Context, pr plan.Run, last bool) (*results.Run, error) {
	point := r.exp.Points[pr.Point]
	for attempt := 1; ; attempt++ {
		r.opt.Progress.RunStarted(point, pr.Repetition, attempt)
		w, err := r.opt.Store.BeginRun(pr.Index, point.Point)
		if err != nil {
			return nil, err
		}
		run := &results.Run{
			Index: pr.Index, Point: point.Point, Repetition: pr.Repetition, Seed: pr.Setup.Seed,
			Started: time.Now(), Attempts: attempt, PlanHash: pr.Hash, Status: results.StatusOK, Valid: true,
		}
		e := &execution{r: r, run: run, setup: pr.Setup, point: point, writer: w, last: last}
		err = e.do(ctx)
		run.Duration = time.Since(run.Started)
		if ctx.Err() != nil {
			w.Abort()
			return nil, errors.Join(ctx.Err(), err)
		}
		if errors.Is(err, instrument.ErrRequired) {
			// No run can be better on this host.
			w.Abort()
			return nil, fmt.Errorf("run %d: %w", pr.Index, err)
		}
		if err != nil {
			run.Status, run.Error, run.Valid = failedStatus(err, run.Status), err.Error(), false
		}
		if run.Status == results.StatusOK && !run.Valid && attempt < r.opt.Attempts {
			w.Abort()
			r.opt.Progress.RunAgain(run)
			// The links may be at fault: prove them anew.
			delete(r.calibrated, point.ID)
			continue
		}
		r.exp.Judge(run)
		if err := w.Commit(run); err != nil {
			return nil, fmt.Errorf("keep run %d: %w", pr.Index, err)
		}
		return run, nil
	}
}

// actorError says how an actor ended a run.
type actorError struct {
	status results.Status
	err    error
}

func (e *actorError) Error() string { return e.err.Error() }

// failedStatus is the status of a run that ended with an error.
func failedStatus(err error, s results.Status) results.Status {
	var a *actorError
	switch {
	case errors.As(err, &a):
		return a.status
	case s == results.StatusNoData:
		return s
	}
	return results.StatusFailed
}

// reuse takes an equal run from the earlier directory, if there is one.
func (r *Runner) reuse(pr plan.Run) (*results.Run, error) {
	if r.opt.Reuse == nil {
		return nil, nil
	}
	old, err := r.opt.Reuse.Find(pr.Hash, r.opt.Host, r.taken)
	if err != nil || old == nil {
		return nil, err
	}
	r.taken = append(r.taken, old.Index)
	run := *old
	run.Index, run.Point, run.Repetition = pr.Index, r.exp.Points[pr.Point].Point, pr.Repetition
	run.Checks, run.Reused = nil, r.opt.Reuse.Path()
	r.exp.Judge(&run)
	if err := r.opt.Store.Import(r.opt.Reuse, old, &run); err != nil {
		return nil, fmt.Errorf("reuse run %d of %s: %w", old.Index, r.opt.Reuse.Path(), err)
	}
	return &run, nil
}
