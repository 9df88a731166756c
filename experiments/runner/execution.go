package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"wirelab/emul"
	"wirelab/experiments"
	"wirelab/results"
	"wirelab/results/store"
	"wirelab/testbed"
	"wirelab/testbed/instrument"
	"wirelab/workloads"
)

const (
	// releaseAhead is how far in the future T0 lies when the actors learn it:
	// long enough for every process to be scheduled and wait for it.
	releaseAhead    = 200 * time.Millisecond
	maxReleaseAhead = 5 * time.Second
	// noticeTime is what must be left of it when they learn it.
	noticeTime = 100 * time.Millisecond
	// readyWait bounds the wait for an actor that says nothing at all. Most
	// bound their own wait, for less, and say what they waited for.
	readyWait = 10 * time.Minute
	// teardownWait is how long actors that still live may take to end.
	teardownWait = 30 * time.Second
	// finishGrace is how long after the end of the load actors may finish by
	// themselves before they are told to stop.
	finishGrace = 300 * time.Millisecond
)

// execution is one attempt at one run.
type execution struct {
	r      *Runner
	run    *results.Run
	setup  *experiments.Setup
	point  experiments.Point
	writer *store.RunWriter
	last   bool

	bed     *testbed.Testbed
	nodes   map[string][]string
	actors  []*actor
	running []runningInstrument
	t0      int64
}

// do makes the run; what it found stands in e.run. Everything it built is gone
// when it returns, also on an error.
func (e *execution) do(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, e.teardown()) }()
	if e.setup.Topology != nil {
		e.r.opt.Progress.Phase("build the network")
		if err := e.build(ctx); err != nil {
			return err
		}
		if err := e.calibrate(ctx); err != nil {
			return err
		}
	}
	e.r.opt.Progress.Phase("start the workloads")
	if err := e.startActors(ctx); err != nil {
		return err
	}
	if err := e.release(ctx); err != nil {
		return err
	}
	e.r.opt.Progress.Phase("measure")
	err = e.wait(ctx)
	e.r.opt.Progress.Phase("collect")
	e.stopActors(ctx)
	found := e.stopInstruments()
	if err != nil {
		return err
	}
	if err := e.collect(found); err != nil {
		return err
	}
	if e.last && e.r.opt.Hold != nil && e.bed != nil {
		return e.r.opt.Hold(ctx, e.bed)
	}
	return nil
}

// build makes the network.
func (e *execution) build(ctx context.Context) error {
	bed, err := testbed.Up(ctx, *e.setup.Topology, testbed.Options{
		RunID: testbed.NewRunID(), Dir: e.r.opt.State, Version: e.r.opt.Version, Backend: e.r.opt.Backend, Seed: e.setup.Seed,
		EventLog: func(link string) string { return filepath.Join(e.writer.Path(), link+".events.csv") },
	})
	if err != nil {
		return fmt.Errorf("build the network: %w", err)
	}
	e.bed = bed
	return nil
}

// calibrate proves, once per point, that every link does what was asked.
func (e *execution) calibrate(ctx context.Context) error {
	found, ok := e.r.calibrated[e.point.ID]
	if !ok {
		e.r.opt.Progress.Phase("calibrate the links")
		var err error
		if found, err = e.bed.Calibrate(ctx, testbed.CalibrateOptions{}); err != nil {
			return fmt.Errorf("calibrate the links: %w", err)
		}
		e.r.calibrated[e.point.ID] = found
	}
	e.run.Links = linkRecords(e.setup.Topology, found)
	e.offloads()
	for _, l := range e.run.Links {
		if l.Calibration != nil && !l.Calibration.OK {
			e.invalid("link %s: %s", l.Name, l.Calibration.Reason)
		}
	}
	return nil
}

func (e *execution) invalid(format string, args ...any) {
	e.run.Valid = false
	e.run.Reasons = append(e.run.Reasons, fmt.Sprintf(format, args...))
}

func (e *execution) note(format string, args ...any) {
	e.run.Notes = append(e.run.Notes, fmt.Sprintf(format, args...))
}

// session is the emulation under the network, nil where no link is impaired.
func (e *execution) session() emul.Session {
	if e.bed == nil {
		return nil
	}
	return e.bed.Session()
}

// release starts the instruments, arms the emulation and tells everyone T0.
// On a busy host starting may take longer than thought; then T0 is moved and
// the instruments, which know it, are started anew.
func (e *execution) release(ctx context.Context) error {
	for ahead := releaseAhead; ; ahead *= 2 {
		e.t0 = workloads.Monotonic() + int64(ahead)
		if err := e.startInstruments(ctx); err != nil {
			return err
		}
		if s := e.session(); s != nil {
			if err := s.Arm(); err != nil {
				return fmt.Errorf("arm the emulation: %w", err)
			}
		}
		left := time.Duration(e.t0 - workloads.Monotonic())
		if left >= noticeTime {
			break
		}
		if ahead > maxReleaseAhead {
			return fmt.Errorf("start the instruments: it took more than %s; the host is too busy, end other load", ahead-noticeTime)
		}
		e.stopInstruments()
	}
	for _, a := range e.actors {
		if err := a.process.Start(e.t0); err != nil {
			return fmt.Errorf("release %s: %w", a.process.Name(), err)
		}
	}
	return nil
}

// teardown undoes the run. Actors that still live are stopped first: nothing
// may run in a namespace that goes away.
func (e *execution) teardown() error {
	e.r.opt.Progress.Phase("tear down")
	// The run's context may have ended; cleaning up has its own deadline.
	ctx, cancel := context.WithTimeout(context.Background(), teardownWait)
	defer cancel()
	e.stopActors(ctx)
	for _, i := range e.running {
		// Only after an error: results are of no use any more.
		_, _ = i.running.Stop()
	}
	e.running = nil
	if e.bed == nil {
		return nil
	}
	err := e.bed.Close()
	e.bed = nil
	if err != nil {
		return fmt.Errorf("tear the network down: %w; wirelab clean removes what is left", err)
	}
	return nil
}

// actorDir makes the directory for files of one actor.
func (e *execution) actorDir(name string) (string, error) {
	dir := filepath.Join(e.writer.Path(), "actors", name)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("make a directory for %s: %w", name, err)
	}
	return dir, nil
}

// runningInstrument is a started instrument with its block.
type runningInstrument struct {
	experiments.NamedInstrument
	running instrument.Running
}
