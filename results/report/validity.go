package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"wirelab/results"
)

// validity is what the page says on whether the numbers can be trusted.
type validity struct {
	Words       []string
	LeftOut     []leftOut
	Notes       []noteView
	Calibration []calibrationRow
	Counters    *counterTable
	Host        []counterRow
	Events      []eventRow
	Actors      []actorRow
	Overhead    []fact
	Runs        []runRow
}

type leftOut struct {
	Run               int
	Point, Repetition string
	Why               string
}

type noteView struct{ Runs, Text string }

type calibrationRow struct {
	Link, Point, Backend                                     string
	RTTAsked, RTT, RTTTolerance, RateAsked, Forward, Reverse string
	OK                                                       bool
	Verdict                                                  string
}

type counterRow struct{ Metric, Anchor, Low, Median, High string }

type eventRow struct{ Instrument, Event, Status, Count string }

type actorRow struct{ Name, Node, Status, CPU, Load string }

type runRow struct {
	Index, Repetition, Attempts      int
	Point, Status, Seed, Took, Dir   string
	Valid                            bool
	Samples, SamplesShort, Size, Why string
}

func newValidity(d *data) validity {
	v := validity{
		Calibration: calibrationRows(d), Events: eventRows(d.Runs), Actors: actorRows(d.Runs), Runs: runRows(d.Runs),
		Counters: counterRows(d), Host: d.spreads(isHost),
	}
	for _, r := range d.Runs {
		if !r.Usable() {
			v.LeftOut = append(v.LeftOut, leftOut{r.Index, r.Point.ID, fmt.Sprint(r.Repetition), whyLeftOut(r)})
		}
	}
	for _, n := range groupNotes(d.Runs) {
		v.Notes = append(v.Notes, noteView{runList(n.runs), n.words()})
	}
	for _, f := range sortedNumbers(overhead(d)) {
		v.Overhead = append(v.Overhead, fact{f.name, fmt.Sprintf("%.2f %% of one core", 100*f.value)})
	}
	v.Words = words(d, v)
	return v
}

// overheadMetric is what the runner adds for every instrument.
const overheadMetric = "overhead_cpu_s"

// overhead is each instrument's share of one core: as the manifest says, else
// the largest CPU time of a run over the length of its load.
func overhead(d *data) map[string]float64 {
	shares := map[string]float64{}
	span := d.Manifest.Warmup + d.Manifest.Duration
	for _, r := range d.Runs {
		for _, x := range r.Values {
			if name, last := splitMetric(x.Metric); last == overheadMetric && span > 0 {
				shares[name] = max(shares[name], x.Value/span)
			}
		}
	}
	for name, share := range d.Manifest.Overhead {
		shares[name] = share
	}
	return shares
}

// words sums the section up.
func words(d *data, v validity) []string {
	out := []string{runsLine(d.counts) + "."}
	if n := len(v.Calibration); n > 0 {
		bad := 0
		for _, c := range v.Calibration {
			if !c.OK {
				bad++
			}
		}
		s := fmt.Sprintf("Calibration before load: %d of %d links and points within tolerance.", n-bad, n)
		out = append(out, s)
	} else {
		out = append(out, "No link was calibrated.")
	}
	worst, found := 0.0, false
	for _, r := range d.Runs {
		for _, x := range r.Values {
			if r.Usable() && strings.HasSuffix(x.Metric, ".departure_error_p99_s") {
				worst, found = max(worst, x.Value), true
			}
		}
	}
	if found {
		out = append(out, fmt.Sprintf("During load, the 99th percentile of departure error was at most %s.", results.FormatValue(worst, "s")))
	}
	return out
}

// counters are what the emulation counts about itself, with their columns.
var counters = []struct{ metric, column string }{
	{"departure_error_p50_s", "departure error p50"}, {"departure_error_p99_s", "p99"}, {"departure_error_max_s", "largest"},
	{"deadline_misses_count", "late packets"}, {"overload_drops_count", "overload drops"}, {"loss_drops_count", "loss drops"}, {"queue_drops_count", "queue drops"},
}

// counterTable holds the largest value of each counter per link direction.
type counterTable struct {
	Columns []string
	Rows    []counterLine
	Quiet   int // directions that are not emulated and dropped nothing
}

type counterLine struct {
	Name  string
	Cells []counterCell
}

type counterCell struct{ Text, Anchor string }

// counterRows lays the counters out by link direction; nil when no valid run
// has any.
func counterRows(d *data) *counterTable {
	largest := map[string]float64{}
	units := map[string]string{}
	for _, r := range d.Runs {
		for _, v := range r.Values {
			if r.Usable() {
				largest[v.Metric] = max(largest[v.Metric], v.Value)
				units[v.Metric] = v.Unit
			}
		}
	}
	t := &counterTable{}
	for _, c := range counters {
		t.Columns = append(t.Columns, c.column)
	}
	for _, n := range d.Manifest.Metrics {
		line := counterLine{Name: n.Name}
		found, loud := false, false
		for _, c := range counters {
			m := n.Name + "." + c.metric
			unit, ok := units[m]
			if !ok {
				line.Cells = append(line.Cells, counterCell{Text: "–"})
				continue
			}
			if unit != "s" {
				unit = "" // a plain count
			}
			found, loud = true, loud || largest[m] > 0
			line.Cells = append(line.Cells, counterCell{results.FormatValue(largest[m], unit), anchor(m)})
		}
		switch {
		case found && loud:
			t.Rows = append(t.Rows, line)
		case found:
			t.Quiet++
		}
	}
	if len(t.Rows)+t.Quiet == 0 {
		return nil
	}
	return t
}

// isHost picks signs of contention.
func isHost(kind, metric string) bool {
	return kind == "core_load" && !strings.HasPrefix(metric, "cpu")
}

// spreads lists metrics with their smallest, median and largest value over all
// valid runs.
func (d *data) spreads(pick func(kind, metric string) bool) []counterRow {
	kinds := map[string]string{}
	for _, n := range d.Manifest.Metrics {
		kinds[n.Name] = n.Kind
	}
	var out []counterRow
	for _, m := range d.metrics {
		name, last := splitMetric(m)
		if !pick(kinds[name], last) {
			continue
		}
		var values []float64
		unit := ""
		for _, r := range d.Runs {
			if x, ok := r.Lookup(m); ok && r.Usable() && !math.IsNaN(x.Value) {
				values = append(values, x.Value)
				unit = x.Unit
			}
		}
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		scale := results.ScaleFor(unit, values[len(values)-1])
		high, low, median, _ := scale.Row(values[len(values)-1], values[0], values[(len(values)-1)/2], 0)
		out = append(out, counterRow{m, anchor(m), low, median, high})
	}
	return out
}

// calibrationRows lists each link and point once: calibration is made once per
// point and host.
func calibrationRows(d *data) []calibrationRow {
	var out []calibrationRow
	seen := map[[2]string]bool{}
	for _, p := range d.table.Points {
		for _, r := range d.Runs {
			if r.Point.ID != p.ID {
				continue
			}
			for _, l := range r.Links {
				k := [2]string{l.Name, p.ID}
				if l.Calibration == nil || seen[k] {
					continue
				}
				seen[k] = true
				out = append(out, calibrationOf(l, p))
			}
		}
	}
	return out
}

func calibrationOf(l results.LinkRecord, p results.Point) calibrationRow {
	c := l.Calibration
	rate := func(v float64) string {
		if v <= 0 {
			return "–"
		}
		return results.FormatValue(v, "bit/s")
	}
	row := calibrationRow{
		Link: l.Name, Point: p.Label(), Backend: l.Backend, OK: c.OK, Verdict: "within tolerance",
		RTTAsked: results.FormatValue(c.RTTAskedS, "s"), RTT: results.FormatValue(c.RTTMeasuredS, "s"), RTTTolerance: results.FormatValue(c.RTTToleranceS, "s"),
		RateAsked: rate(c.ForwardAskedBPS), Forward: rate(c.ForwardBPS), Reverse: rate(c.ReverseBPS),
	}
	if c.ReverseAskedBPS != c.ForwardAskedBPS {
		row.RateAsked += ", back " + rate(c.ReverseAskedBPS)
	}
	if !c.OK {
		row.Verdict = c.Reason
		if row.Verdict == "" {
			row.Verdict = "outside tolerance"
		}
	}
	return row
}
