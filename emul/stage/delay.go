package stage

import (
	"math"
	"time"
)

// Constant delays every segment by the same time.
type Constant time.Duration

// Delay implements [Delayer].
func (c Constant) Delay(uint64) int64 { return int64(c) }

// Uniform spreads the delay evenly over Delay ± Jitter; where Jitter exceeds
// Delay, over 0 to Delay + Jitter.
type Uniform struct {
	stream    Stream
	low, span float64
}

// NewUniform returns the distribution with the given centre and half width.
func NewUniform(s Stream, delay, jitter time.Duration) *Uniform {
	low := max(delay-jitter, 0)
	return &Uniform{stream: s, low: float64(low), span: float64(delay + jitter - low)}
}

// Delay implements [Delayer].
func (u *Uniform) Delay(index uint64) int64 {
	return int64(u.low + u.span*u.stream.Float(index))
}

// sigmas bounds the normal distribution above, in standard deviations.
const sigmas = 4

// Normal spreads the delay as a normal distribution truncated to 0 below and
// 4 standard deviations above its mean. It is drawn by inversion, so that one
// draw is enough whatever is cut off.
type Normal struct {
	stream         Stream
	mean, sd       float64
	floor, portion float64 // the distribution function at 0, and what is left
}

// NewNormal returns the distribution with the given mean and standard
// deviation (before truncation; sd must be positive).
func NewNormal(s Stream, mean, sd time.Duration) *Normal {
	n := &Normal{stream: s, mean: float64(mean), sd: float64(sd)}
	n.floor = phi(max(-n.mean/n.sd, -2*sigmas))
	n.portion = phi(sigmas) - n.floor
	return n
}

// phi is the standard normal distribution function.
func phi(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// Delay implements [Delayer].
func (n *Normal) Delay(index uint64) int64 {
	p := n.floor + n.portion*n.stream.Float(index)
	return int64(max(n.mean+n.sd*math.Sqrt2*math.Erfinv(2*p-1), 0))
}

var (
	_ Delayer = Constant(0)
	_ Delayer = (*Uniform)(nil)
	_ Delayer = (*Normal)(nil)
)
