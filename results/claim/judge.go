package claim

import (
	"fmt"
	"math"
	"slices"

	"wirelab/results"
	"wirelab/results/stat"
)

// decisive is the share of resamples that a verdict needs.
const decisive = 0.975

// Options of [Judge].
type Options struct {
	// Smoke says that the experiment ran in its smoke size, where claims
	// decide only with SmokeClaims.
	Smoke, SmokeClaims bool
	// Points, if not nil, are the points that must have valid runs even where no
	// run of them exists.
	Points []results.Point
}

// Judge gives the verdict of every claim over the valid ones of runs. Equal
// runs and seed give equal verdicts, whatever the order of runs and claims.
func Judge(claims []Claim, runs []*results.Run, seed uint64, opt Options) []results.ClaimResult {
	s := newSample(runs)
	out := make([]results.ClaimResult, 0, len(claims))
	for _, c := range claims {
		r := results.ClaimResult{Name: c.Name, Published: c.Published, Source: c.Source, Verdict: results.Undecided}
		if c.NotTestable != "" {
			r.Verdict, r.Reason = results.NotTestable, c.NotTestable
		} else {
			judge(&r, c, s, seed, opt)
			if opt.Smoke && !opt.SmokeClaims {
				r.Reason = "a smoke run decides no claim"
				if r.Verdict != results.Undecided {
					r.Reason += fmt.Sprintf(" (here it %s)", r.Verdict)
				}
				r.Verdict = results.Undecided
			}
		}
		out = append(out, r)
	}
	return out
}

// sample is the set of valid runs, by repetition.
type sample struct {
	runs        []*results.Run // by index
	repetitions []int          // those with a valid run, ascending
	byRep       map[int][]*results.Run
	perPoint    map[string]int // valid repetitions
	points      []string       // all points, those without a valid run too
}

func newSample(runs []*results.Run) *sample {
	s := &sample{byRep: map[int][]*results.Run{}, perPoint: map[string]int{}}
	ordered := slices.SortedStableFunc(slices.Values(runs), func(a, b *results.Run) int { return a.Index - b.Index })
	for _, r := range ordered {
		if !slices.Contains(s.points, r.Point.ID) {
			s.points = append(s.points, r.Point.ID)
		}
		if !r.Usable() {
			continue
		}
		s.runs = append(s.runs, r)
		if s.byRep[r.Repetition] == nil {
			s.repetitions = append(s.repetitions, r.Repetition)
		}
		s.byRep[r.Repetition] = append(s.byRep[r.Repetition], r)
		s.perPoint[r.Point.ID]++
	}
	slices.Sort(s.repetitions)
	return s
}

// repetitionsOf returns the smallest number of valid repetitions among the
// points of used runs (all points when used is nil), and that point.
func (s *sample) repetitionsOf(used []*results.Run, all []results.Point) (n int, point string) {
	points := s.points
	if used != nil {
		points = nil
		for _, r := range used {
			if !slices.Contains(points, r.Point.ID) {
				points = append(points, r.Point.ID)
			}
		}
	} else {
		for _, p := range all {
			if !slices.Contains(points, p.ID) {
				points = append(slices.Clone(points), p.ID)
			}
		}
	}
	n = math.MaxInt
	for _, p := range points {
		if s.perPoint[p] < n {
			n, point = s.perPoint[p], p
		}
	}
	if n == math.MaxInt {
		n = 0
	}
	return n, point
}

// resample appends to buffer the runs of the drawn repetitions.
func (s *sample) resample(buffer []*results.Run, draw []int) []*results.Run {
	buffer = buffer[:0]
	for _, i := range draw {
		buffer = append(buffer, s.byRep[s.repetitions[i]]...)
	}
	return buffer
}

// judge fills in the verdict of one testable claim.
func judge(r *results.ClaimResult, c Claim, s *sample, seed uint64, opt Options) {
	if len(s.runs) == 0 {
		r.Reason = "no valid run"
		return
	}
	point, err := evaluate(c, s.runs)
	if err != nil {
		r.Reason = err.Error()
		return
	}
	r.Value = point.Value
	n, where := s.repetitionsOf(point.Used, opt.Points)
	r.N = n
	if c.NoInterval {
		r.Verdict = verdict(point.Condition)
		return
	}
	if n < stat.MinForInterval {
		r.Reason = fmt.Sprintf("%d valid repetition(s) of %s: a verdict needs at least %d", n, where, stat.MinForInterval)
		return
	}
	b := bootstrap(c, s, seed)
	if len(b.values) > 0 && r.Value != nil {
		low, high := stat.PercentileInterval(b.values)
		r.Low, r.High = &low, &high
	}
	share := float64(b.same(point.Condition)) / stat.Resamples
	if share >= decisive {
		r.Verdict = verdict(point.Condition)
		return
	}
	word := "true"
	if !point.Condition {
		word = "false"
	}
	r.Reason = fmt.Sprintf("the condition is %s here and in %.1f %% of resamples; a verdict needs %.1f %%", word, 100*share, 100*decisive)
	if b.errors > 0 {
		r.Reason += fmt.Sprintf(" (%d of %d resamples could not be evaluated: %v)", b.errors, stat.Resamples, b.lastErr)
	}
}

// counted are the outcomes of the bootstrap.
type counted struct {
	holds, fails, errors int
	lastErr              error
	values               []float64
}

func (b *counted) same(condition bool) int {
	if condition {
		return b.holds
	}
	return b.fails
}

// bootstrap evaluates the claim over resamples of repetitions, the same draw
// in every point.
func bootstrap(c Claim, s *sample, seed uint64) counted {
	b := counted{values: make([]float64, 0, stat.Resamples)}
	var buffer []*results.Run
	stat.Bootstrap(len(s.repetitions), stat.Resamples, seed, func(draw []int) {
		buffer = s.resample(buffer, draw)
		e, err := evaluate(c, buffer)
		switch {
		case err != nil:
			b.errors++
			b.lastErr = err
			return
		case e.Condition:
			b.holds++
		default:
			b.fails++
		}
		if e.Value != nil {
			b.values = append(b.values, *e.Value)
		}
	})
	return b
}

// evaluate calls the claim's function; a value that is not finite is an error,
// because no verdict can rest on it.
func evaluate(c Claim, runs []*results.Run) (Estimate, error) {
	e, err := c.Eval(runs)
	if err != nil {
		return e, err
	}
	if e.Value != nil && (math.IsNaN(*e.Value) || math.IsInf(*e.Value, 0)) {
		return e, fmt.Errorf("the value is not finite: a metric it needs is missing or zero")
	}
	return e, nil
}

func verdict(condition bool) results.Verdict {
	if condition {
		return results.Holds
	}
	return results.Fails
}
