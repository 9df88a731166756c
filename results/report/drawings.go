package report

import (
	"fmt"
	"slices"
	"strings"

	"wirelab/results"
	"wirelab/results/figure"
)

// drawFigures draws what the author asked for; without any, a figure of the
// first headline metrics over the sweep.
func drawFigures(in Input, d *data, c *collected) []drawn {
	asked := in.Figures
	if len(asked) == 0 {
		asked = chosenFigures(d)
	}
	var out []drawn
	used := map[string]bool{}
	for _, f := range asked {
		x := drawn{Figure: f, file: fileName(f.Name, used)}
		switch f.Kind {
		case "time":
			if in.Samples == nil {
				x.err = fmt.Errorf("the time series are not at hand")
			} else {
				x.svg, x.err = figure.Time(f, figure.Timeline{
					Runs: in.Runs, Traces: c.all, Defs: in.Manifest.Metrics,
					Warmup: in.Manifest.Warmup, Duration: in.Manifest.Duration,
				})
			}
		case "line", "":
			x.svg, x.err = figure.Line(f, in.Runs, in.Manifest.Metrics)
		default:
			x.err = fmt.Errorf("figures of kind %q are not known; known kinds are line and time", f.Kind)
		}
		out = append(out, x)
	}
	return out
}

// chosenFigures proposes one figure per headline quantity that several names
// share, at most three, where the author asked for none.
func chosenFigures(d *data) []figure.Figure {
	byQuantity := map[string][]string{}
	var order []string
	for _, m := range d.short {
		_, last := splitMetric(m)
		if byQuantity[last] == nil {
			order = append(order, last)
		}
		byQuantity[last] = append(byQuantity[last], m)
	}
	var figures []figure.Figure
	for _, q := range order[:min(len(order), 3)] {
		f := figure.Figure{Name: q, Title: strings.Join(byQuantity[q], ", "), Kind: "line", Y: byQuantity[q]}
		if len(d.sweep) > 0 {
			f.X = d.sweep[0]
		}
		figures = append(figures, f)
	}
	return figures
}

// maxFileName bounds a figure's file name in bytes; file systems take 255, and
// suffixes and a temporary name's words are added to it.
const maxFileName = 100

// fileName makes a figure's name safe and unique.
func fileName(name string, used map[string]bool) string {
	safe := strings.Map(func(r rune) rune {
		if r < 0x20 || strings.ContainsRune(`/\:*?"<>|. `, r) {
			return '-'
		}
		return r
	}, name)
	if len(safe) > maxFileName {
		safe = strings.ToValidUTF8(safe[:maxFileName], "")
	}
	if safe == "" || safe == "topology" {
		safe = "figure-" + safe
	}
	unique := safe
	for i := 2; used[unique]; i++ {
		unique = fmt.Sprintf("%s-%d", safe, i)
	}
	used[unique] = true
	return unique
}

// diagram is the manifest's topology with the calibration of the first run
// that has one.
func diagram(in Input) *results.Diagram {
	if in.Manifest.Topology == nil {
		return nil
	}
	d := *in.Manifest.Topology
	d.Links = slices.Clone(d.Links)
	for i := range d.Links {
		for _, r := range in.Runs {
			if d.Links[i].Calibration != nil {
				break
			}
			for _, l := range r.Links {
				if l.Name == d.Links[i].Name && l.Calibration != nil {
					d.Links[i].Calibration = l.Calibration
					d.Links[i].Forward, d.Links[i].Reverse = l.Forward, l.Reverse
				}
			}
		}
	}
	return &d
}
