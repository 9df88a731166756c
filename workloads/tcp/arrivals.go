package tcp

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"wirelab/emul/attr"
	"wirelab/emul/unit"
)

// Arrivals is open-loop load: flows start at times of their own, each a new
// connection of a drawn size. Times and sizes come from two random streams of
// the run's seed: equal seeds give equal arrivals, and a change of the sizes
// leaves the times as they were.
type Arrivals struct {
	Process  string        `hcl:"process,optional" default:"poisson" doc:"\"poisson\" (independent arrivals) or \"trace\" (from a file)."`
	Rate     float64       `hcl:"rate,optional" doc:"Mean arrivals a second."`
	Load     unit.Ratio    `hcl:"load,optional" doc:"Instead of rate: the offered load as a share of capacity."`
	Capacity unit.Rate     `hcl:"capacity,optional" doc:"Rate of the path's bottleneck, for load and slowdown."`
	BaseRTT  time.Duration `hcl:"base_rtt,optional" doc:"Round-trip time of the empty path, for slowdown; default: the shortest handshake of the run."`
	Trace    string        `hcl:"trace,optional" doc:"File of arrivals, a line each: seconds since the start, size in bytes."`
	Sizes    *Sizes        `hcl:"sizes,block" doc:"Distribution of the flows' sizes."`
}

// maxArrivals bounds the flows of one run.
const maxArrivals = 2_000_000

// arrival is one flow of a schedule.
type arrival struct {
	at   time.Duration // since the workload's start
	size int64         // bytes, at least headerSize
}

func (a *Arrivals) validate() []attr.Problem {
	var out []attr.Problem
	bad := func(path, summary, format string, args ...any) {
		out = append(out, attr.At(path, summary, format, args...))
	}
	switch a.Process {
	case "poisson":
		if a.Trace != "" {
			bad("trace", "a trace of a Poisson process", `write process = "trace", or leave the file out`)
		}
		out = append(out, a.validatePoisson()...)
	case "trace":
		if a.Trace == "" {
			bad("trace", "no file of arrivals", "name a file with a line per flow: seconds since the start, size in bytes")
		} else if _, err := readTrace(a.Trace); err != nil {
			bad("trace", "the trace cannot be read", "%v", err)
		}
		if a.Rate != 0 || a.Load != 0 || a.Sizes != nil {
			bad("", "a trace gives times and sizes", `leave "rate", "load" and "sizes" out`)
		}
	default:
		bad("process", "unknown arrival process", `%q is not "poisson" or "trace"`, a.Process)
	}
	return out
}

func (a *Arrivals) validatePoisson() []attr.Problem {
	var out []attr.Problem
	bad := func(path, summary, format string, args ...any) {
		out = append(out, attr.At(path, summary, format, args...))
	}
	if a.Sizes == nil {
		return append(out, attr.At("", "no sizes", `add a block: sizes { distribution = "exponential", mean = "100KiB" }, an attribute a line`))
	}
	if problems := a.Sizes.validate(); len(problems) > 0 {
		return attr.Under("sizes", problems)
	}
	switch {
	case a.Rate != 0 && a.Load != 0:
		bad("load", "rate and load together", "each follows from the other: keep one")
	case a.Rate == 0 && a.Load == 0:
		bad("rate", "no arrival rate", `give "rate" in flows a second, or "load" with "capacity"`)
	case a.Rate < 0 || a.Load < 0 || math.IsNaN(a.Rate) || math.IsNaN(float64(a.Load)):
		bad("rate", "negative arrival rate", "it must be above zero")
	case a.Load > 0 && a.Capacity <= 0:
		bad("capacity", "load of an unknown capacity", `give the bottleneck's rate: load is a share of it`)
	case a.flowsPerSecond() > 100_000:
		bad("rate", "too many arrivals", "%.0f flows a second is more than one sender can open (100000)", a.flowsPerSecond())
	}
	return out
}

// flowsPerSecond is the mean arrival rate of the Poisson process.
func (a *Arrivals) flowsPerSecond() float64 {
	if a.Rate > 0 {
		return a.Rate
	}
	d, err := a.Sizes.distribution()
	if err != nil || d.mean <= 0 {
		return 0
	}
	return float64(a.Load) * float64(a.Capacity) / 8 / d.mean
}

// schedule draws the arrivals of a time span.
func (a *Arrivals) schedule(stream func(string) *rand.Rand, length time.Duration) ([]arrival, error) {
	if a.Process == "trace" {
		return readTrace(a.Trace)
	}
	d, err := a.Sizes.distribution()
	if err != nil {
		return nil, err
	}
	times, sizes := stream("arrivals"), stream("sizes")
	rate := a.flowsPerSecond()
	var out []arrival
	for at := times.ExpFloat64() / rate; at < length.Seconds(); at += times.ExpFloat64() / rate {
		if len(out) == maxArrivals {
			return nil, fmt.Errorf("more than %d flows arrive in %v: lower the rate or the duration", maxArrivals, length)
		}
		out = append(out, arrival{time.Duration(at * 1e9), max(headerSize, int64(math.Round(d.draw(sizes))))})
	}
	return out, nil
}

// readTrace reads a file of arrivals, sorted by time; "#" begins a comment.
func readTrace(path string) ([]arrival, error) {
	var out []arrival
	err := readColumns(path, func(seconds, size float64) error {
		at := time.Duration(seconds * 1e9)
		switch {
		case seconds < 0 || seconds > 1e6:
			return fmt.Errorf("time %v is not between 0 and 1000000 s", seconds)
		case len(out) > 0 && at < out[len(out)-1].at:
			return fmt.Errorf("time %v comes before the line above: sort the file", seconds)
		case size < 1 || size > 1e15:
			return fmt.Errorf("size %v is not between 1 and 1e15 bytes", size)
		case len(out) == maxArrivals:
			return fmt.Errorf("more than %d arrivals", maxArrivals)
		}
		out = append(out, arrival{at, max(headerSize, int64(math.Round(size)))})
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s holds no arrivals", path)
	}
	return out, err
}

// readColumns calls row with the two numbers of each line of a file, separated
// by blanks or a comma.
func readColumns(path string, row func(a, b float64) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		columns := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' || r == ';' || r == '\r' })
		if len(columns) == 0 {
			continue
		}
		var v [2]float64
		err := fmt.Errorf("want two numbers, found %d columns", len(columns))
		if len(columns) == 2 {
			if v[0], err = strconv.ParseFloat(columns[0], 64); err == nil {
				v[1], err = strconv.ParseFloat(columns[1], 64)
			}
		}
		if err == nil && (math.IsNaN(v[0]+v[1]) || math.IsInf(v[0]+v[1], 0)) {
			err = fmt.Errorf("not a finite number")
		}
		if err == nil {
			err = row(v[0], v[1])
		}
		if err != nil {
			return fmt.Errorf("%s:%d: %w", filepath.Base(path), n, err)
		}
	}
	return lines.Err()
}
