// Package rehearse plays one workload without a testbed: all roles on this
// host, over loopback unless told otherwise.
//
// It is what a run does with a workload, cut to the bone: servers first, wait
// until they are ready, then clients, release all at T0, stop, reduce. A check
// of the host uses it to see whether a tool works at all, and tests use it.
package rehearse

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"wirelab/results"
	"wirelab/workloads"
)

// Options say what to play.
type Options struct {
	// Binary is our executable, started as "actor KIND ROLE".
	Binary   string
	Kind     string
	Name     string // of the block; default "w"
	Workload workloads.Workload
	// Nodes maps each node to its addresses; default: every node the workload
	// names is loopback.
	Nodes map[string][]string
	// Start starts a command on a node; default: right here.
	Start  func(node string, cmd *exec.Cmd) error
	Seed   uint64
	Window workloads.Window // its End is also the end of the load
	// Dir takes logs and files of the actors.
	Dir string
	// Grace of workloads.ProcessOptions.
	Grace time.Duration
}

// Result is what came of it.
type Result struct {
	workloads.Outcome
	Samples []results.Sample
	Actors  map[string]workloads.Result // by workload.role
}

// lead is how far ahead T0 is set.
const lead = 50 * time.Millisecond

// player is one rehearsal.
type player struct {
	o     Options
	procs []*workloads.Process
	// awaited are those whose end is the workload's: the clients, if any.
	awaited []*workloads.Process

	mu      sync.Mutex
	samples []results.Sample
}

// Run plays the workload once. The error says that it did not come to a
// result; the actors' own verdicts are in the result in either case.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Name == "" {
		o.Name = "w"
	}
	p := &player{o: o}
	err := p.play(ctx)
	r := Result{Actors: map[string]workloads.Result{}}
	var records []results.Record
	for _, proc := range slices.Backward(p.procs) { // clients first
		proc.Stop(ctx)
		a := proc.Result()
		r.Actors[proc.Name()] = a
		records = append(records, a.Records...)
		if a.Status != results.StatusOK && a.Status != results.StatusPartial && err == nil {
			err = fmt.Errorf("%s: %s: %s", proc.Name(), a.Status, a.Error)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.Samples = p.samples
	if err != nil {
		return r, err
	}
	r.Outcome = o.Workload.Reduce(workloads.Reduction{Window: o.Window, Samples: r.Samples, Records: records})
	return r, nil
}

func (p *player) play(ctx context.Context) error {
	var endpoints map[string]string
	for _, role := range p.o.Workload.Roles() {
		proc, err := p.start(ctx, role, endpoints)
		if err != nil {
			return err
		}
		p.procs = append(p.procs, proc)
		ready, err := proc.WaitReady(ctx)
		if err != nil {
			return err
		}
		if role.Server {
			endpoints = ready
		} else {
			p.awaited = append(p.awaited, proc)
		}
	}
	if len(p.awaited) == 0 {
		p.awaited = p.procs
	}
	t0 := workloads.Monotonic() + int64(lead)
	for _, proc := range p.procs {
		if err := proc.Start(t0); err != nil {
			return err
		}
	}
	end := time.NewTimer(lead + time.Duration(p.o.Window.End*float64(time.Second)))
	defer end.Stop()
	for _, proc := range p.awaited {
		select {
		case <-proc.Finished():
			continue
		case <-end.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		break
	}
	return nil
}

func (p *player) start(ctx context.Context, role workloads.Role, endpoints map[string]string) (*workloads.Process, error) {
	config, err := json.Marshal(role.Config)
	if err != nil {
		return nil, fmt.Errorf("configuration of %s: %w", role.Name, err)
	}
	o := p.o
	start := (*exec.Cmd).Start
	if o.Start != nil {
		start = func(cmd *exec.Cmd) error { return o.Start(role.Node, cmd) }
	}
	c := o.Workload.Common()
	return workloads.StartProcess(ctx, start, workloads.ProcessOptions{
		Binary: o.Binary, Grace: o.Grace,
		LogPath: filepath.Join(o.Dir, o.Name+"."+role.Name+".log"),
		Record:  p.record,
		Spec: workloads.Spec{
			Kind: o.Kind, Role: role.Name, Workload: o.Name, Node: role.Node, Config: config,
			Nodes: p.nodes(), Endpoints: endpoints, Seed: o.Seed, Window: o.Window,
			StartS: c.Start.Seconds(), StopS: p.stop(), Cores: c.Cores, Dir: o.Dir, Binary: o.Binary,
		},
	})
}

// stop is the end of the workload's activity in s.
func (p *player) stop() float64 {
	if s := p.o.Workload.Common().Stop; s > 0 {
		return min(s.Seconds(), p.o.Window.End)
	}
	return p.o.Window.End
}

func (p *player) nodes() map[string][]string {
	if p.o.Nodes != nil {
		return p.o.Nodes
	}
	nodes := map[string][]string{}
	c := p.o.Workload.Common()
	for _, n := range []string{c.From, c.To, c.On} {
		if n != "" {
			nodes[n] = []string{"127.0.0.1", "::1"}
		}
	}
	return nodes
}

func (p *player) record(s results.Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples = append(p.samples, s)
}
