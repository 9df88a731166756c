// Package command runs any program as a workload.
//
// A command runs on one node. A server is started before the load and is ready
// when it says so or listens; any other command starts with the load. What the
// program prints is kept in files and searched for numbers ([Capture]), which
// become metrics. A program that fails, crashes or prints nothing useful never
// becomes a number: the status says what happened.
//
// With protocol = "actor" the program speaks protocol 1 of package workloads
// itself, on its stdin and descriptor 3, and we only hand its messages on.
package command

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirelab/emul/attr"
	"wirelab/results"
	"wirelab/workloads"
)

// Command is the configuration of a command block.
type Command struct {
	workloads.Placement
	Argv         []string          `hcl:"argv" doc:"The program and its arguments; no shell. A program with a slash is relative to the experiment's file."`
	Env          map[string]string `hcl:"env,optional" doc:"Environment added to ours and to WIRELAB_NODE_NAME (each node's address), WIRELAB_T0_NS, WIRELAB_DIR, WIRELAB_SEED."`
	Dir          string            `hcl:"dir,optional" doc:"Working directory, relative to the experiment's file, which is also the default."`
	Server       bool              `hcl:"server,optional" doc:"Start before the load and end after it."`
	Timeout      time.Duration     `hcl:"timeout,optional" doc:"A program that runs longer has failed; default: none."`
	Grace        time.Duration     `hcl:"grace,optional" default:"2s" doc:"How long a program may still run after the end of the load before it is told to stop; 0s for one that never ends by itself."`
	StopSignal   string            `hcl:"stop_signal,optional" default:"TERM" doc:"Signal that tells it to stop: \"TERM\" or \"INT\"; KILL follows after 1 s."`
	ExpectStatus int               `hcl:"expect_status,optional" default:"0" doc:"Exit status of success."`
	Protocol     string            `hcl:"protocol,optional" doc:"\"actor\" for a program that speaks the actor protocol itself."`
	Ready        *Ready            `hcl:"ready,block" doc:"When a server is ready."`
	Captures     []Capture         `hcl:"capture,block" doc:"A number in the output that becomes a metric of that name."`

	// Base is the directory of the experiment's file; see Locate.
	Base string
}

// Ready says how a server shows that it is ready.
type Ready struct {
	Regex   string        `hcl:"regex,optional" doc:"It printed something that matches."`
	Port    int           `hcl:"port,optional" doc:"It listens on this TCP port, or has bound this UDP port."`
	Timeout time.Duration `hcl:"timeout,optional" default:"30s" doc:"It has failed when it is not ready by then."`
}

var (
	_ workloads.Workload = (*Command)(nil)
	_ workloads.Locator  = (*Command)(nil)
)

const (
	roleRunner    = "runner"
	protocolActor = "actor"

	defaultGrace = 2 * time.Second
	readyTimeout = 30 * time.Second
)

// Kind describes the workload kind "command".
func Kind() workloads.Kind {
	return workloads.Kind{
		Name:   "command",
		Doc:    "Any program on one node: a server, a client, a script. Numbers in its output become metrics.",
		New:    func() workloads.Workload { return &Command{Grace: defaultGrace, StopSignal: "TERM"} },
		Actors: map[string]func() workloads.Actor{roleRunner: func() workloads.Actor { return &runner{} }},
	}
}

// Locate makes paths relative to dir.
func (c *Command) Locate(dir string) { c.Base = dir }

// Roles returns the one role.
func (c *Command) Roles() []workloads.Role {
	return []workloads.Role{{Name: roleRunner, Node: c.On, Server: c.Server, Config: c}}
}

// Validate checks the attributes, and that the program exists.
func (c *Command) Validate() []attr.Problem {
	var out []attr.Problem
	bad := func(path, summary, format string, args ...any) {
		out = append(out, attr.At(path, summary, format, args...))
	}
	if c.On == "" {
		bad("", "a command runs on one node", `name it in "on"`)
	}
	if c.From != "" || c.To != "" {
		bad("", "a command has one node", `write "on" instead of "from" and "to"; a server and its client are two commands`)
	}
	if _, err := c.program(); err != nil {
		bad("argv", "program not found", "%v", err)
	}
	if c.StopSignal != "TERM" && c.StopSignal != "INT" {
		bad("stop_signal", "unknown signal", `write "TERM" or "INT"`)
	}
	if c.Grace < 0 || c.Grace > 3*time.Second {
		bad("grace", "grace out of range", "between 0s and 3s: an actor gets 5 s to end")
	}
	if c.ExpectStatus < 0 || c.ExpectStatus > 255 {
		bad("expect_status", "no such exit status", "%d is not between 0 and 255", c.ExpectStatus)
	}
	if c.Protocol != "" && c.Protocol != protocolActor {
		bad("protocol", "unknown protocol", `write "actor", or leave it out`)
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			bad("env", "no name of a variable", "%q", name)
		}
	}
	out = append(out, c.validateReady()...)
	return append(out, c.validateCaptures()...)
}

func (c *Command) validateReady() []attr.Problem {
	r := c.Ready
	switch {
	case r == nil && c.Server && c.Protocol == "":
		p := attr.At("server", "a server without readiness", `clients may come before it listens: add a block ready { port = … } or ready { regex = "…" }`)
		p.Warning = true
		return []attr.Problem{p}
	case r == nil:
		return nil
	case !c.Server:
		return []attr.Problem{attr.At("ready", "readiness of a command that is no server", `nobody waits for it: write server = true, or leave the block out`)}
	case c.Protocol == protocolActor:
		return []attr.Problem{attr.At("ready", "readiness of an actor", `it says "ready" itself: leave the block out`)}
	case (r.Regex == "") == (r.Port == 0):
		return []attr.Problem{attr.At("ready", "one sign of readiness", `give either "regex" or "port"`)}
	case r.Port < 0 || r.Port > 65535:
		return []attr.Problem{attr.At("ready.port", "no such port", "%d is not between 1 and 65535", r.Port)}
	case r.Timeout < 0:
		return []attr.Problem{attr.At("ready.timeout", "negative time", "leave it out for 30s")}
	}
	if _, err := regexp.Compile(r.Regex); err != nil {
		return []attr.Problem{attr.At("ready.regex", "no regular expression", "%v", err)}
	}
	return nil
}

func (c *Command) validateCaptures() []attr.Problem {
	var out []attr.Problem
	seen := map[string]bool{}
	for _, m := range commandMetrics {
		seen[m.Name] = true
	}
	for i, k := range c.Captures {
		problems := k.validate(c.Protocol == protocolActor)
		if seen[k.Name] {
			problems = append(problems, attr.At("", "two metrics of one name", "%q is taken: choose another name", k.Name))
		}
		seen[k.Name] = true
		out = append(out, attr.Under("capture", attr.Under(strconv.Itoa(i), problems))...)
	}
	return out
}

// program returns the path of the executable.
func (c *Command) program() (string, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return "", errors.New("argv is empty: write the program and its arguments")
	}
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		path := c.path(name)
		if err := executable(path); err != nil {
			return "", err
		}
		return filepath.Abs(path)
	}
	if dirs, set := c.Env["PATH"]; set {
		for _, dir := range filepath.SplitList(dirs) {
			if path := filepath.Join(dir, name); executable(path) == nil {
				return filepath.Abs(path)
			}
		}
		return "", fmt.Errorf("%q is in no directory of the PATH given in env (%s)", name, dirs)
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%q is in no directory of PATH (%s): install it, or write its path", name, os.Getenv("PATH"))
	}
	return path, nil
}

// path is a path of the configuration, as seen from here.
func (c *Command) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(c.Base, p)
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable: chmod +x it, or put its interpreter first", path)
	}
	return nil
}

// commandMetrics exist for every command.
var commandMetrics = []results.MetricDef{
	{Name: "duration_s", Unit: "s", Source: "CLOCK_MONOTONIC", Definition: "Time from the program's start to its end."},
	{Name: "cpu_s", Unit: "s", Source: "wait4 (struct rusage)",
		Definition: "CPU time of the program and its children that ended before it, over its whole life, user and system."},
}

// Metrics lists the captures and what is known of every program.
func (c *Command) Metrics() []results.MetricDef {
	out := slices.Clone(commandMetrics)
	for _, k := range c.Captures {
		out = append(out, k.metric(c.Argv))
	}
	return out
}

// Reduce turns the program's captures into values.
func (c *Command) Reduce(in workloads.Reduction) workloads.Outcome {
	out := workloads.Outcome{Values: map[string]float64{}, Status: results.StatusOK}
	flows := map[int32]map[string]float64{}
	for _, r := range in.Records {
		if r.Name != "" {
			continue
		}
		if r.Flow >= 0 && r.Flow < maxFlows {
			flows[r.Flow] = r.Values
			continue
		}
		for name, v := range r.Values {
			out.Values[name] = v
		}
	}
	c.meanOfSamples(out.Values, in)
	c.keepDeclared(out.Values)
	for i := range int32(len(flows)) {
		f := flows[i]
		c.keepDeclared(f)
		out.Flows = append(out.Flows, f)
	}
	found := 0
	for _, k := range c.Captures {
		if _, ok := out.Values[k.Name]; ok {
			found++
			continue
		}
		out.Notes = append(out.Notes, fmt.Sprintf("capture %q found no finite number", k.Name))
		out.Status = results.StatusPartial
	}
	if len(c.Captures) > 0 && found == 0 {
		out.Status = results.StatusNoData
	}
	return out
}

// maxFlows bounds the flows that a program may report one by one.
const maxFlows = 100_000

// meanOfSamples fills a declared metric that an actor gave only as a series.
func (c *Command) meanOfSamples(values map[string]float64, in workloads.Reduction) {
	if c.Protocol != protocolActor {
		return
	}
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, s := range in.Samples {
		if s.Time >= in.Window.Start && s.Time < in.Window.End {
			sums[s.Metric] += s.Value
			counts[s.Metric]++
		}
	}
	for name, n := range counts {
		if _, ok := values[name]; !ok {
			values[name] = sums[name] / n
		}
	}
}

// keepDeclared drops values that no metric declares.
func (c *Command) keepDeclared(values map[string]float64) {
	for name := range values {
		if !slices.ContainsFunc(c.Metrics(), func(m results.MetricDef) bool { return m.Name == name }) {
			delete(values, name)
		}
	}
}
