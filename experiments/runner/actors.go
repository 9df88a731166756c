package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"wirelab/experiments"
	"wirelab/results"
	"wirelab/workloads"
)

// actor is one started role.
type actor struct {
	workload *experiments.NamedWorkload
	role     workloads.Role
	process  *workloads.Process
	log      string // relative to the run's directory

	mu      sync.Mutex
	samples []results.Sample // guarded by mu
}

func (a *actor) take(s results.Sample) {
	a.mu.Lock()
	a.samples = append(a.samples, s)
	a.mu.Unlock()
}

// startActors starts every role, servers of all workloads first, and returns
// when all are ready.
func (e *execution) startActors(ctx context.Context) error {
	if err := e.addresses(); err != nil {
		return err
	}
	endpoints := map[string]map[string]string{}
	for _, servers := range []bool{true, false} {
		var batch []*actor
		for i := range e.setup.Workloads {
			w := &e.setup.Workloads[i]
			for _, role := range w.Config.Roles() {
				if role.Server != servers {
					continue
				}
				a, err := e.startActor(ctx, w, role, endpoints[w.Name])
				if err != nil {
					return err
				}
				batch = append(batch, a)
			}
		}
		if err := e.ready(ctx, batch, endpoints); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until the batch is ready and keeps the endpoints by workload.
func (e *execution) ready(ctx context.Context, batch []*actor, endpoints map[string]map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	for _, a := range batch {
		got, err := a.process.WaitReady(ctx)
		if err != nil {
			var nr *workloads.NotReadyError
			if errors.As(err, &nr) {
				// Told with the place the log has when the run is finished.
				nr.Log = filepath.Join(e.r.opt.Store.RunPath(e.run), a.log)
				return &actorError{nr.Status, err}
			}
			return err
		}
		if endpoints[a.workload.Name] == nil {
			endpoints[a.workload.Name] = map[string]string{}
		}
		for k, v := range got {
			endpoints[a.workload.Name][k] = v
		}
	}
	return nil
}

// addresses collects every node's addresses for the actors' specs.
func (e *execution) addresses() error {
	e.nodes = map[string][]string{}
	if e.setup.Topology == nil {
		return nil
	}
	all, err := e.setup.Topology.Addresses()
	if err != nil {
		return fmt.Errorf("number the network: %w", err)
	}
	for node, list := range all {
		for _, a := range list {
			for _, ip := range []netip.Prefix{a.IPv4, a.IPv6} {
				if ip.IsValid() { // a link of a small MTU has no IPv6
					e.nodes[node] = append(e.nodes[node], ip.Addr().String())
				}
			}
		}
	}
	return nil
}

// seedFor derives a workload's seed from the run's.
func seedFor(run uint64, name string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s", run, name)
	return h.Sum64()
}

func (e *execution) startActor(ctx context.Context, w *experiments.NamedWorkload, role workloads.Role, endpoints map[string]string) (*actor, error) {
	name := w.Name + "." + role.Name
	dir, err := e.actorDir(name)
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(role.Config)
	if err != nil {
		return nil, fmt.Errorf("encode the configuration of %s: %w", name, err)
	}
	place := w.Config.Common()
	window := e.window()
	stop := window.End
	if place.Stop > 0 {
		stop = place.Stop.Seconds()
	}
	a := &actor{workload: w, role: role, log: filepath.Join("actors", name+".log")}
	spec := workloads.Spec{
		Kind: w.Kind, Role: role.Name, Workload: w.Name, Node: role.Node, Config: config, Nodes: e.nodes,
		Endpoints: endpoints, Seed: seedFor(e.setup.Seed, w.Name), Window: window,
		StartS: place.Start.Seconds(), StopS: stop, After: place.After != "", Cores: place.Cores,
		Dir: dir, Binary: e.r.opt.Binary,
	}
	a.process, err = workloads.StartProcess(ctx, e.starter(role.Node), workloads.ProcessOptions{
		Binary: e.r.opt.Binary, Spec: spec, LogPath: filepath.Join(e.writer.Path(), a.log),
		Record: func(s results.Sample) {
			a.take(s)
			e.writer.Sample(s)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start %s on node %s: %w", name, role.Node, err)
	}
	e.actors = append(e.actors, a)
	return a, nil
}

// starter starts a command in a node's namespace; without a network, here.
func (e *execution) starter(node string) func(*exec.Cmd) error {
	if e.bed == nil {
		return (*exec.Cmd).Start
	}
	return e.bed.Host(node).Start
}

func (e *execution) window() workloads.Window {
	return workloads.Window{Start: e.setup.Warmup.Seconds(), End: (e.setup.Warmup + e.setup.Duration).Seconds()}
}

// wait returns when all clients have finished or the load is over, or with an
// error when an actor or the forwarder died or the disk is full.
func (e *execution) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	end := time.Duration(e.t0-workloads.Monotonic()) + e.setup.Warmup + e.setup.Duration + finishGrace
	timer := time.NewTimer(end)
	defer timer.Stop()

	finished := make(chan struct{})
	go e.follow(ctx, finished)
	for _, a := range e.actors {
		go e.watch(ctx, a, cancel)
	}
	if s := e.session(); s != nil {
		go func() {
			select {
			case <-ctx.Done():
			case <-s.Done():
				cancel(fmt.Errorf("the forwarding process ended during the run: %w", s.Err()))
			}
		}()
	}
	disk := time.NewTicker(250 * time.Millisecond)
	defer disk.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return nil
		case <-finished:
			return nil
		case <-disk.C:
			if err := e.writer.Err(); err != nil {
				return err
			}
		}
	}
}

// watch reports an actor that is gone without having finished its work. A
// server that leaves early takes its clients with it.
func (e *execution) watch(ctx context.Context, a *actor, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
		return
	case <-a.process.Done():
	}
	r := a.process.Result()
	if r.Status != results.StatusOK && r.Status != results.StatusPartial && r.Status != results.StatusNoData {
		cancel(a.failure(r))
	}
}

// failure words how an actor ended a run.
func (a *actor) failure(r workloads.Result) error {
	return &actorError{r.Status, fmt.Errorf("%s on node %s: %s", a.process.Name(), a.role.Node, r.Error)}
}

// follow starts workloads whose "after" has ended and closes finished when
// every client has finished.
func (e *execution) follow(ctx context.Context, finished chan<- struct{}) {
	byName := map[string][]*actor{}
	for _, a := range e.actors {
		if !a.role.Server {
			byName[a.workload.Name] = append(byName[a.workload.Name], a)
		}
	}
	var all sync.WaitGroup
	for name, clients := range byName {
		all.Go(func() {
			if !await(ctx, clients) {
				return
			}
			at := workloads.Monotonic()
			for _, a := range e.actors {
				if a.workload.Config.Common().After == name {
					// An actor that is gone is reported by watch.
					_ = a.process.Go(at)
				}
			}
		})
	}
	all.Wait()
	if ctx.Err() == nil && len(byName) > 0 {
		close(finished)
	}
}

// await waits until all actors have finished; false when ctx ended first.
func await(ctx context.Context, actors []*actor) bool {
	for _, a := range actors {
		select {
		case <-ctx.Done():
			return false
		case <-a.process.Finished():
		}
	}
	return true
}

// stopActors ends all actors, clients before servers, each group at once.
func (e *execution) stopActors(ctx context.Context) {
	for _, servers := range []bool{false, true} {
		var group sync.WaitGroup
		for _, a := range e.actors {
			if a.role.Server == servers {
				group.Go(func() { a.process.Stop(ctx) })
			}
		}
		group.Wait()
	}
}
