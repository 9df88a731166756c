package report

import (
	"fmt"
	"slices"
	"strings"

	"wirelab/results"
)

// eventRows counts the statuses of each perf event; what the host cannot
// count shows as n/s.
func eventRows(runs []*results.Run) []eventRow {
	type key struct{ instrument, event, status string }
	n := map[key]int{}
	least := map[key]float64{}
	var order []key
	for _, r := range runs {
		for _, e := range r.Events {
			k := key{e.Instrument, e.Event, e.Status}
			if n[k] == 0 {
				order = append(order, k)
				least[k] = 1
			}
			n[k]++
			least[k] = min(least[k], e.RunningRatio)
		}
	}
	var out []eventRow
	for _, k := range order {
		status := strings.ReplaceAll(k.status, "_", " ")
		switch k.status {
		case "not_supported":
			status = "n/s (not supported on this host)"
		case "multiplexed":
			status = fmt.Sprintf("multiplexed (counted for at least %.0f %% of the time)", 100*least[k])
		}
		out = append(out, eventRow{k.instrument, k.event, status, fmt.Sprintf("%d runs", n[k])})
	}
	return out
}

// actorRows sums each actor process up over all runs.
func actorRows(runs []*results.Run) []actorRow {
	type sum struct {
		node     string
		cpu      []float64
		load     float64
		statuses map[results.Status]int
	}
	sums := map[string]*sum{}
	var order []string
	for _, r := range runs {
		for _, a := range r.Actors {
			s := sums[a.Name]
			if s == nil {
				s = &sum{node: a.Node, statuses: map[results.Status]int{}}
				sums[a.Name] = s
				order = append(order, a.Name)
			}
			s.cpu = append(s.cpu, a.CPUSeconds)
			s.load = max(s.load, a.MaxCoreLoad)
			s.statuses[a.Status]++
		}
	}
	var out []actorRow
	for _, name := range order {
		s := sums[name]
		slices.Sort(s.cpu)
		var statuses []string
		for _, st := range []results.Status{results.StatusOK, results.StatusPartial, results.StatusNoData, results.StatusUnsupported, results.StatusFailed, results.StatusCrashed} {
			if n := s.statuses[st]; n > 0 {
				statuses = append(statuses, fmt.Sprintf("%s %d×", strings.ReplaceAll(string(st), "_", " "), n))
			}
		}
		out = append(out, actorRow{
			Name: name, Node: s.node, Status: strings.Join(statuses, ", "),
			CPU: results.FormatValue(s.cpu[(len(s.cpu)-1)/2], "s"), Load: fmt.Sprintf("%.1f %%", 100*s.load),
		})
	}
	return out
}

func runRows(runs []*results.Run) []runRow {
	var out []runRow
	for _, r := range runs {
		row := runRow{
			Index: r.Index, Repetition: r.Repetition, Attempts: r.Attempts, Point: r.Point.ID, Status: strings.ReplaceAll(string(r.Status), "_", " "),
			Seed: fmt.Sprint(r.Seed), Took: seconds(r.Duration.Seconds()), Dir: "runs/" + r.DirName(), Valid: r.Usable(),
		}
		if !row.Valid {
			row.Why = whyLeftOut(r)
		}
		for _, f := range r.Files {
			if f.Name == "samples.parquet" {
				row.Samples, row.SamplesShort, row.Size = f.SHA256, f.SHA256[:min(12, len(f.SHA256))], results.FormatValue(float64(f.Bytes), "bytes")
			}
		}
		out = append(out, row)
	}
	return out
}
