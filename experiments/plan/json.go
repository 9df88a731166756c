package plan

import (
	"encoding/json"
	"io"

	"wirelab/experiments"
	"wirelab/results"
	"wirelab/testbed"
)

// Schema names the form of WriteJSON.
const Schema = "wirelab/plan/1"

type planJSON struct {
	Schema      string                 `json:"schema"`
	Experiment  string                 `json:"experiment"`
	Title       string                 `json:"title"`
	Hash        string                 `json:"plan_sha256"`
	Substrate   string                 `json:"substrate"`
	Emulation   string                 `json:"emulation"`
	Smoke       bool                   `json:"smoke"`
	Seed        uint64                 `json:"seed"`
	Repetitions int                    `json:"repetitions"`
	EstimateS   float64                `json:"estimate_s"`
	Variables   map[string]string      `json:"variables,omitempty"`
	HostFacts   map[string]string      `json:"host_facts,omitempty"`
	Sweep       []string               `json:"sweep"`
	Points      []pointJSON            `json:"points"`
	Runs        []runJSON              `json:"runs"`
	Checks      []string               `json:"checks"`
	Claims      []claimJSON            `json:"claims"`
	Figures     []string               `json:"figures"`
	Metrics     []results.NamedMetrics `json:"metrics"`
	Notes       []string               `json:"notes"`
}

type pointJSON struct {
	results.Point
	setupJSON
}

type setupJSON struct {
	DurationS   float64                  `json:"duration_s"`
	WarmupS     float64                  `json:"warmup_s"`
	Topology    *testbed.Topology        `json:"topology,omitempty"`
	Addresses   map[string][]addressJSON `json:"addresses,omitempty"`
	Workloads   []namedJSON              `json:"workloads"`
	Instruments []namedJSON              `json:"instruments"`
}

type addressJSON struct {
	Link string `json:"link"`
	IPv4 string `json:"ipv4"`
	IPv6 string `json:"ipv6,omitempty"`
}

type namedJSON struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Config any    `json:"config"`
}

type runJSON struct {
	Index      int    `json:"index"`
	Point      string `json:"point"`
	Repetition int    `json:"repetition"`
	Seed       uint64 `json:"seed"`
	Hash       string `json:"plan_sha256"`
	// Setup is given where it differs from the point's (run.* was used).
	Setup *setupJSON `json:"setup,omitempty"`
}

type claimJSON struct {
	Name        string `json:"name"`
	Published   string `json:"published,omitempty"`
	Source      string `json:"source,omitempty"`
	NotTestable string `json:"not_testable,omitempty"`
}

// WriteJSON writes one JSON object with everything that is planned. Each point
// shows its first repetition. Rates are in bit/s, sizes in bytes, times inside
// topology and config in nanoseconds.
func (p *Plan) WriteJSON(w io.Writer) error {
	x := p.Experiment
	out := planJSON{
		Schema: Schema, Experiment: x.Name, Title: x.Title, Hash: p.Hash, Substrate: x.Substrate, Emulation: x.Emulation,
		Smoke: x.Smoke, Seed: x.Seed, Repetitions: x.Repetitions, EstimateS: p.Estimate().Seconds(), Variables: x.Variables,
		HostFacts: x.HostFacts, Sweep: notNil(x.SweepNames), Points: []pointJSON{}, Runs: []runJSON{}, Checks: []string{},
		Claims: []claimJSON{}, Figures: []string{}, Metrics: notNil(x.Metrics), Notes: notNil(x.Notes),
	}
	for i := range x.Points {
		q := &x.Points[i]
		out.Points = append(out.Points, pointJSON{q.Point, *describe(&q.Repetitions[0])})
	}
	for _, r := range p.Runs {
		j := runJSON{Index: r.Index, Point: x.Points[r.Point].ID, Repetition: r.Repetition, Seed: r.Setup.Seed, Hash: r.Hash}
		if string(r.Setup.Text) != string(x.Points[r.Point].Repetitions[0].Text) {
			j.Setup = describe(r.Setup)
		}
		out.Runs = append(out.Runs, j)
	}
	for _, c := range x.Checks {
		out.Checks = append(out.Checks, c.Name)
	}
	for _, c := range x.Claims {
		out.Claims = append(out.Claims, claimJSON{c.Name, c.Published, c.Source, c.NotTestable})
	}
	for _, f := range x.Figures {
		out.Figures = append(out.Figures, f.Name)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func describe(s *experiments.Setup) *setupJSON {
	out := &setupJSON{
		DurationS: s.Duration.Seconds(), WarmupS: s.Warmup.Seconds(), Topology: s.Topology,
		Workloads: []namedJSON{}, Instruments: []namedJSON{},
	}
	if s.Topology != nil {
		out.Addresses = map[string][]addressJSON{}
		// A topology without addresses was refused before it came here.
		all, _ := s.Topology.Addresses()
		for name, list := range all {
			for _, a := range list {
				j := addressJSON{Link: a.Link, IPv4: a.IPv4.String()}
				if a.IPv6.IsValid() {
					j.IPv6 = a.IPv6.String()
				}
				out.Addresses[name] = append(out.Addresses[name], j)
			}
		}
	}
	for _, w := range s.Workloads {
		out.Workloads = append(out.Workloads, namedJSON{w.Name, w.Kind, w.Config})
	}
	for _, i := range s.Instruments {
		out.Instruments = append(out.Instruments, namedJSON{i.Name, i.Kind, i.Config})
	}
	return out
}
