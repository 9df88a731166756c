package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strings"
	"syscall"
	"time"

	"wirelab/experiments"
	"wirelab/results"
	"wirelab/results/claim"
	"wirelab/results/report"
	"wirelab/results/store"
)

// manifestSchema names the manifest's format.
const manifestSchema = "wirelab/manifest/1"

// newManifest describes what is about to be run.
func (j *job) newManifest(given []string) *results.Manifest {
	m := &results.Manifest{
		Schema: manifestSchema, Experiment: j.exp.Name, Title: j.exp.Title,
		ExperimentHash: hash(j.exp.Source), PlanHash: j.plan.Hash,
		Variables: j.exp.Variables, Flags: given, Smoke: j.exp.Smoke, Substrate: j.exp.Substrate,
		Duration: j.exp.Duration.Seconds(), Warmup: j.exp.Warmup.Seconds(),
		Repetitions: j.exp.Repetitions, Seed: j.exp.Seed, Host: j.host,
		Version: versionText(), Modules: moduleSums(), Started: time.Now(),
		Metrics: j.exp.Metrics, Notes: j.exp.Notes, Topology: diagram(j.exp),
	}
	for _, r := range j.plan.Runs {
		m.Order = append(m.Order, r.Index)
		m.Runs = append(m.Runs, results.RunStatus{Index: r.Index, Point: j.exp.Points[r.Point].ID, Repetition: r.Repetition})
	}
	sort.Slice(m.Runs, func(a, b int) bool { return m.Runs[a].Index < m.Runs[b].Index })
	return m
}

// hash is the SHA-256 sum of a text, in hex.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// diagram draws the first point's network.
func diagram(exp *experiments.Experiment) *results.Diagram {
	for _, p := range exp.Points {
		if len(p.Repetitions) == 0 || p.Repetitions[0].Topology == nil {
			continue
		}
		t := p.Repetitions[0].Topology
		d := &results.Diagram{}
		addresses, err := t.Addresses()
		for _, n := range t.Nodes {
			node := results.DiagramNode{Name: n.Name, Kind: string(n.Kind)}
			if err == nil {
				for _, a := range addresses[n.Name] {
					node.Addresses = append(node.Addresses, a.IPv4.String())
				}
			}
			d.Nodes = append(d.Nodes, node)
		}
		for _, l := range t.Links {
			d.Links = append(d.Links, results.LinkRecord{
				Name: t.Name + "." + l.Name, Between: [2]string{l.A, l.B}, Backend: l.Backend, Why: l.Why, Mode: string(l.Mode),
				Forward: results.DirectionAsked{Text: l.Forward.String()}, Reverse: results.DirectionAsked{Text: l.Reverse.String()},
			})
		}
		return d
	}
	return nil
}

// outcome is what --json prints, and what the exit status follows from.
type outcome struct {
	Schema  string                `json:"schema"` // "wirelab/outcome/1"
	Dir     string                `json:"dir"`
	Report  string                `json:"report"`
	Runs    int                   `json:"runs"`
	Valid   int                   `json:"valid"`
	Invalid []invalidRun          `json:"invalid"`
	Checks  []results.CheckResult `json:"checks"`
	Claims  []results.ClaimResult `json:"claims"`
	Exit    int                   `json:"exit"`
}

type invalidRun struct {
	Run    int    `json:"run"`
	Reason string `json:"reason"`
}

// finish judges, writes every page and prints the table. status is the exit
// status that already applies, if any.
func (j *job) finish(status int) error {
	if j.made {
		j.manifest.Finished = time.Now()
	}
	j.manifest.Complete = len(store.Missing(j.manifest, j.runs)) == 0
	if j.manifest.Complete {
		j.manifest.Interrupted = false
	}
	if len(j.runs) == 0 {
		// Nothing was measured: an empty directory would only puzzle.
		if err := j.dir.Discard(); err != nil {
			return err
		}
		return exit(status, nil)
	}
	j.manifest.Overhead = overhead(j.runs)
	sort.Slice(j.runs, func(a, b int) bool { return j.runs[a].Index < j.runs[b].Index })
	claims := claim.Judge(j.exp.Claims, j.runs, j.exp.Seed, claim.Options{Smoke: j.exp.Smoke, SmokeClaims: j.exp.SmokeClaims})
	in := report.Input{
		Manifest: j.manifest, Runs: j.runs, Claims: claims, Figures: j.exp.Figures, Experiment: j.exp.Source,
		Samples: j.dir.Samples, Dir: j.dir.Path(), Command: j.arg,
	}
	if err := writePages(j.dir, in, j.exp.SweepNames); err != nil {
		return exit(exitHost, err)
	}
	if err := j.save(); err != nil {
		return err
	}
	o := j.judge(claims, status)
	if j.f.json {
		if err := writeJSON(j.s.Out, o); err != nil && !errors.Is(err, syscall.EPIPE) {
			return err
		}
	} else {
		// Who reads the table may have seen enough; the verdict stays.
		if err := report.Text(j.s.Out, in); err != nil && !errors.Is(err, syscall.EPIPE) {
			return err
		}
		fmt.Fprintf(j.s.Out, "\nreport: %s\n", o.Report)
	}
	if o.Exit != exitOK {
		return exit(o.Exit, nil)
	}
	return nil
}

// writePages writes the report and its companions.
func writePages(dir *store.Dir, in report.Input, sweep []string) error {
	if err := dir.WriteSummary(in.Runs, sweep); err != nil {
		return err
	}
	out, err := report.Render(in)
	if err != nil {
		return fmt.Errorf("render the report: %w", err)
	}
	for name, data := range out.Files() {
		if err := dir.WriteFile(name, data); err != nil {
			return err
		}
	}
	return nil
}

// judge counts runs and follows the order of exit statuses.
func (j *job) judge(claims []results.ClaimResult, status int) outcome {
	o := outcome{
		Schema: "wirelab/outcome/1", Dir: j.dir.Path(), Report: j.dir.Path() + "/report.html",
		Runs: len(j.runs), Invalid: []invalidRun{}, Checks: []results.CheckResult{}, Claims: claims,
	}
	failedRun, invalid, failedJudgement := false, false, false
	for _, r := range j.runs {
		switch {
		case !r.HasMetrics():
			failedRun = true
			o.Invalid = append(o.Invalid, invalidRun{r.Index, string(r.Status) + ": " + firstLine(r.Error)})
		case !r.Valid:
			invalid = true
			o.Invalid = append(o.Invalid, invalidRun{r.Index, strings.Join(r.Reasons, "; ")})
		default:
			o.Valid++
		}
		for _, c := range r.Checks {
			o.Checks = append(o.Checks, c)
			failedJudgement = failedJudgement || !c.Pass && !j.exp.Smoke
		}
	}
	if !j.exp.Smoke || j.exp.SmokeClaims {
		for _, c := range claims {
			failedJudgement = failedJudgement || c.Verdict == results.Fails || j.f.strict && c.Verdict == results.Undecided
		}
	}
	switch {
	case status != exitOK:
		o.Exit = status
	case o.Valid == 0 && invalid:
		o.Exit = exitHost
	case failedRun:
		o.Exit = exitRunFailed
	case failedJudgement:
		o.Exit = exitJudgement
	}
	return o
}

// overhead is the mean cost of each instrument over the runs.
func overhead(runs []*results.Run) map[string]float64 {
	sum, n := map[string]float64{}, map[string]float64{}
	for _, r := range runs {
		for name, share := range r.Overhead {
			sum[name] += share
			n[name]++
		}
	}
	for name := range sum {
		sum[name] /= n[name]
	}
	return sum
}
