package tcp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"wirelab/emul/attr"
	"wirelab/emul/unit"
)

// Sizes is the distribution of the sizes of arriving flows.
type Sizes struct {
	Distribution string    `hcl:"distribution,optional" default:"fixed" doc:"\"fixed\", \"exponential\", \"pareto\" or \"empirical\" (from a file)."`
	Mean         unit.Size `hcl:"mean,optional" doc:"Mean size, before max cuts it."`
	Shape        float64   `hcl:"shape,optional" doc:"Tail index of the Pareto distribution, above 1 (default 1.5): the smaller, the heavier the tail."`
	Max          unit.Size `hcl:"max,optional" doc:"Cut sizes above this."`
	File         string    `hcl:"file,optional" doc:"For \"empirical\": a line each of size in bytes and cumulative probability, rising to 1; linear in between."`
}

// defaultShape is the Pareto tail index where none is given: within the range
// that measured file sizes show (Crovella and Bestavros, 1997: 1.1 to 1.5).
const defaultShape = 1.5

func (s *Sizes) shape() float64 {
	if s.Shape == 0 {
		return defaultShape
	}
	return s.Shape
}

func (s *Sizes) validate() []attr.Problem {
	var out []attr.Problem
	bad := func(path, summary, format string, args ...any) {
		out = append(out, attr.At(path, summary, format, args...))
	}
	switch s.Distribution {
	case "fixed", "exponential", "pareto":
		if s.Mean < 1 {
			bad("mean", "no mean size", `the %s distribution needs one, for example mean = "100KiB"`, s.Distribution)
		}
		if s.File != "" {
			bad("file", "a file of a "+s.Distribution+" distribution", `write distribution = "empirical", or leave the file out`)
		}
	case "empirical":
		if s.File == "" {
			bad("file", "no file of sizes", "name a file with a line each of size in bytes and cumulative probability")
		} else if _, err := s.distribution(); err != nil {
			bad("file", "the sizes cannot be read", "%v", err)
		}
		if s.Mean != 0 {
			bad("mean", "mean of an empirical distribution", "it follows from the file: leave it out")
		}
	default:
		bad("distribution", "unknown distribution", `%q is not "fixed", "exponential", "pareto" or "empirical"`, s.Distribution)
	}
	if s.Distribution == "pareto" && !(s.shape() > 1) {
		bad("shape", "no finite mean", "a Pareto distribution has a mean only with a shape above 1")
	}
	if s.Shape != 0 && s.Distribution != "pareto" {
		bad("shape", "only the Pareto distribution has a shape", "leave it out")
	}
	if s.Max != 0 && s.Max < headerSize {
		bad("max", "flow too small", "a flow has at least %d bytes", headerSize)
	}
	return out
}

// distribution draws sizes in bytes and knows their mean.
type distribution struct {
	mean float64
	draw func(*rand.Rand) float64
}

// distribution returns what the attributes describe, cut at max.
func (s *Sizes) distribution() (distribution, error) {
	mean := float64(s.Mean)
	limit := math.Inf(1)
	if s.Max > 0 {
		limit = float64(s.Max)
	}
	cut := func(draw func(*rand.Rand) float64) func(*rand.Rand) float64 {
		return func(r *rand.Rand) float64 { return min(limit, draw(r)) }
	}
	switch s.Distribution {
	case "fixed":
		return distribution{min(mean, limit), cut(func(*rand.Rand) float64 { return mean })}, nil
	case "exponential":
		// E[min(X, m)] of an exponential X.
		return distribution{mean * -math.Expm1(-limit/mean), cut(func(r *rand.Rand) float64 { return mean * r.ExpFloat64() })}, nil
	case "pareto":
		a := s.shape()
		least := mean * (a - 1) / a
		cutMean := mean
		if limit < math.Inf(1) {
			cutMean = limit
			if limit > least { // E[min(X, m)] = (a xm - xm^a m^(1-a)) / (a-1)
				cutMean = (a*least - math.Pow(least, a)*math.Pow(limit, 1-a)) / (a - 1)
			}
		}
		return distribution{cutMean, cut(func(r *rand.Rand) float64 {
			return least * math.Pow(1-r.Float64(), -1/a)
		})}, nil
	case "empirical":
		e, err := readEmpirical(s.File, limit)
		if err != nil {
			return distribution{}, err
		}
		return distribution{e.mean(), cut(e.draw)}, nil
	}
	return distribution{}, fmt.Errorf("unknown size distribution %q", s.Distribution)
}

// empirical is a piecewise linear cumulative distribution.
type empirical struct {
	size, probability []float64
	limit             float64
}

func readEmpirical(path string, limit float64) (*empirical, error) {
	e := &empirical{limit: limit}
	err := readColumns(path, func(size, p float64) error {
		n := len(e.size)
		switch {
		case size < 0 || size > 1e15:
			return fmt.Errorf("size %v is not between 0 and 1e15 bytes", size)
		case p < 0 || p > 1:
			return fmt.Errorf("cumulative probability %v is not between 0 and 1", p)
		case n > 0 && (size < e.size[n-1] || p < e.probability[n-1]):
			return fmt.Errorf("sizes and cumulative probabilities must rise from line to line")
		}
		e.size, e.probability = append(e.size, size), append(e.probability, p)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n := len(e.size); n == 0 || e.probability[n-1] != 1 {
		return nil, fmt.Errorf("the last cumulative probability must be 1")
	}
	return e, nil
}

// mean is exact for the piecewise linear distribution cut at the limit.
func (e *empirical) mean() float64 {
	sum := min(e.size[0], e.limit) * e.probability[0]
	for i := 1; i < len(e.size); i++ {
		low, high, p := e.size[i-1], e.size[i], e.probability[i]-e.probability[i-1]
		switch {
		case high <= e.limit:
			sum += p * (low + high) / 2
		case low >= e.limit:
			sum += p * e.limit
		default:
			below := (e.limit - low) / (high - low)
			sum += p * (below*(low+e.limit)/2 + (1-below)*e.limit)
		}
	}
	return sum
}

func (e *empirical) draw(r *rand.Rand) float64 {
	u := r.Float64()
	i := sort.SearchFloat64s(e.probability, u)
	if i == 0 {
		return e.size[0]
	}
	p0, p1 := e.probability[i-1], e.probability[i]
	return e.size[i-1] + (e.size[i]-e.size[i-1])*(u-p0)/(p1-p0)
}
