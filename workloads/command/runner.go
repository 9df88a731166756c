package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"wirelab/workloads"
)

// runner plays the one role of a command.
type runner struct {
	env    *workloads.Env
	c      *Command
	prefix string // of the output's files
}

// Run starts the program when its time has come, waits for its end or brings it
// about, and reports what its output holds.
func (r *runner) Run(ctx context.Context, env *workloads.Env) error {
	r.env, r.c = env, &Command{}
	if err := json.Unmarshal(env.Spec.Config, r.c); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	r.prefix = filepath.Join(env.Spec.Dir, env.Spec.Workload)
	becomeSubreaper()
	switch {
	case r.c.Protocol == protocolActor:
		return r.relay(ctx)
	case r.c.Server:
		return r.serve(ctx)
	}
	return r.once(ctx)
}

// serve runs a server: ready before the load, stopped by the stop message.
func (r *runner) serve(ctx context.Context) error {
	if err := r.portFree(); err != nil {
		return err
	}
	p, err := r.start(0)
	if err != nil {
		return err
	}
	defer p.end(0)
	if err := r.waitReady(ctx, p); err != nil {
		return err
	}
	r.env.Ready(nil)
	select {
	case <-ctx.Done():
		told := p.end(0)
		return r.finish(p, told)
	case <-p.exited:
	}
	if err := r.verdict(p, false); err != nil {
		return err
	}
	// It ended by itself and well, perhaps leaving a daemon behind.
	<-ctx.Done()
	p.end(0)
	return r.finish(p, true)
}

// once runs a program for its share of the load.
func (r *runner) once(ctx context.Context) error {
	if _, err := r.c.program(); err != nil {
		return fmt.Errorf("%w: %w", workloads.ErrUnsupported, err)
	}
	r.env.Ready(nil)
	a, err := r.env.Begin(ctx)
	if err != nil {
		return err
	}
	p, err := r.start(a.T0)
	if err != nil {
		return err
	}
	defer p.end(0)
	var timeout <-chan time.Time
	if r.c.Timeout > 0 {
		t := time.NewTimer(r.c.Timeout)
		defer t.Stop()
		timeout = t.C
	}
	over := time.NewTimer(time.Duration(a.End - r.env.Now()))
	defer over.Stop()
	select {
	case <-p.waited:
	case <-timeout:
		p.end(0)
		return fmt.Errorf("it ran longer than its timeout of %v: %s", r.c.Timeout, p.lastWords())
	case <-over.C:
		return r.finish(p, p.end(r.c.Grace))
	case <-ctx.Done():
		return r.finish(p, p.end(r.c.Grace))
	}
	p.end(0) // what it left behind
	return r.finish(p, false)
}

// finish reports what the program left; told says that we ended it.
func (r *runner) finish(p *process, told bool) error {
	if err := r.verdict(p, told); err != nil {
		return err
	}
	if err := errors.Join(p.stdout.kept(), p.stderr.kept()); err != nil {
		return fmt.Errorf("keep the output: %w", err)
	}
	values := map[string]float64{"duration_s": float64(p.endNS-p.beginNS) / 1e9}
	if cpu, ok := p.cpu(); ok {
		values["cpu_s"] = cpu
	}
	why := map[string]string{}
	for _, k := range r.c.Captures {
		text, err := r.output(&k, p)
		if err != nil {
			why[k.Name] = err.Error()
			continue
		}
		v, ok, reason := k.find(text)
		if !ok {
			why[k.Name] = reason
			r.env.Log("capture %s: %s", k.Name, reason)
			continue
		}
		values[k.Name] = v
	}
	r.env.Summary(-1, values, why)
	return nil
}

// verdict says whether the program succeeded.
func (r *runner) verdict(p *process, told bool) error {
	code, signal := p.status()
	switch {
	case told:
		return nil // however it ends when it is told to
	case signal != "":
		return fmt.Errorf("%w: ended by signal %s: %s", workloads.ErrCrashed, signal, p.lastWords())
	case code != r.c.ExpectStatus:
		return fmt.Errorf("exit status %d, expected %d: %s", code, r.c.ExpectStatus, p.lastWords())
	}
	return nil
}

// maxOutput bounds what is read of an output to search it: its end.
const maxOutput = 64 << 20

// output returns the text that a capture searches.
func (r *runner) output(k *Capture, p *process) ([]byte, error) {
	switch source := k.source(); source {
	case "stdout":
		return readEnd(p.stdout.path)
	case "stderr":
		return readEnd(p.stderr.path)
	default:
		env := r.variables(0)
		path := os.Expand(strings.TrimPrefix(source, filePrefix), func(name string) string { return env[name] })
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.workingDir(), path)
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		// File systems keep times in ticks of up to 10 ms.
		if info.ModTime().Before(p.began.Add(-20 * time.Millisecond)) {
			return nil, fmt.Errorf("%s is older than this run", path)
		}
		return readEnd(path)
	}
}

// readEnd reads the last maxOutput bytes of a file.
func readEnd(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := min(info.Size(), maxOutput)
	text := make([]byte, size)
	n, err := f.ReadAt(text, info.Size()-size)
	if err != nil && n == 0 && size > 0 {
		return nil, err
	}
	return text[:n], nil
}

// workingDir is where the program runs.
func (r *runner) workingDir() string {
	if r.c.Dir != "" {
		return r.c.path(r.c.Dir)
	}
	if r.c.Base != "" {
		return r.c.Base
	}
	dir, err := os.Getwd()
	if err != nil {
		return "/"
	}
	return dir
}

// variables is what the program's environment tells it about the run.
func (r *runner) variables(t0 int64) map[string]string {
	s := r.env.Spec
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		dir = s.Dir
	}
	env := map[string]string{
		"WIRELAB_NODE": s.Node, "WIRELAB_DIR": dir, "WIRELAB_SEED": fmt.Sprint(s.Seed),
		"WIRELAB_WARMUP_S": fmt.Sprint(s.Window.Start), "WIRELAB_DURATION_S": fmt.Sprint(s.Window.Length()),
		"WIRELAB_STOP_S": fmt.Sprint(s.StopS),
	}
	if t0 > 0 {
		env["WIRELAB_T0_NS"] = fmt.Sprint(t0)
	}
	for node := range s.Nodes {
		name := "WIRELAB_NODE_" + variableName(node)
		if a, err := r.env.Addr(node, 4); err == nil {
			env[name] = a.String()
		}
		if a, err := r.env.Addr(node, 6); err == nil {
			env[name+"_IPV6"] = a.String()
		}
	}
	for name, value := range r.c.Env {
		env[name] = value
	}
	return env
}

var notInVariable = regexp.MustCompile(`[^A-Z0-9_]`)

// variableName spells a node's name as a shell can say it: "left-1" is LEFT_1.
func variableName(node string) string {
	return notInVariable.ReplaceAllString(strings.ToUpper(node), "_")
}
