// Package stat summarises repetitions: medians with exact intervals, means,
// quantiles, fairness, the bootstrap.
//
// Repetitions of an experiment are few and rarely normal, so the centre is the
// median and its 95 % interval comes from order statistics, which assume
// nothing but independence. Fewer than six values cannot give such an interval:
// a [Summary] then carries the reason, and callers show the points and their
// range. [Cells] groups the valid runs of an experiment by point and metric.
// Values that are not finite never enter a summary.
package stat

import (
	"fmt"
	"math"
	"slices"
)

// Level is the confidence that all intervals of this package are made for.
const Level = 0.95

// MinForInterval is the smallest number of values whose extremes enclose the
// median with 95 % confidence: 1 - 2 (1/2)^n >= 0.95 from n = 6.
const MinForInterval = 6

// Summary describes the values of one metric over repetitions.
type Summary struct {
	N      int
	Median float64
	Mean   float64
	SD     float64 // sample standard deviation; 0 when N < 2
	Min    float64
	Max    float64
	// Interval encloses the median with at least 95 % confidence; nil when
	// there are too few values, and Why then says so.
	Interval *Interval
	Why      string
	Values   []float64 // in the order given, finite ones only
}

// Interval is a range with its exact confidence.
type Interval struct {
	Low, High  float64
	Confidence float64 // at least Level
}

// Summarize summarises the finite ones of values; N is 0 when there are none.
func Summarize(values []float64) Summary {
	s := Summary{Values: make([]float64, 0, len(values))}
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			s.Values = append(s.Values, v)
		}
	}
	s.N = len(s.Values)
	if s.N == 0 {
		s.Why = "no value"
		return s
	}
	sorted := slices.Sorted(slices.Values(s.Values))
	s.Min, s.Max = sorted[0], sorted[s.N-1]
	s.Median = Quantile(sorted, 0.5)
	s.Mean, s.SD = MeanSD(s.Values)
	low, high, confidence, ok := MedianRanks(s.N, Level)
	if !ok {
		s.Why = fmt.Sprintf("n = %d: a 95 %% interval of the median needs at least %d values", s.N, MinForInterval)
		return s
	}
	s.Interval = &Interval{Low: sorted[low-1], High: sorted[high-1], Confidence: confidence}
	return s
}

// Range returns the interval where there is one, else the smallest and largest
// value.
func (s Summary) Range() (low, high float64) {
	if s.Interval != nil {
		return s.Interval.Low, s.Interval.High
	}
	return s.Min, s.Max
}

// MedianRanks returns the ranks (from 1) of the order statistics that enclose
// the median of n independent values with at least the wanted confidence, the
// narrowest symmetric ones, and their exact confidence (binomial, p = 1/2;
// David and Nagaraja, Order Statistics, 7.1). ok is false when n is too small.
func MedianRanks(n int, level float64) (low, high int, confidence float64, ok bool) {
	if n < 2 {
		return 0, 0, 0, false
	}
	// tail is P(Binomial(n, 1/2) <= k-1), the probability that the median lies
	// below the k-th smallest value.
	logHalf := -float64(n) * math.Ln2
	tail := 0.0
	for k := 1; k <= n/2; k++ {
		tail += math.Exp(logChoose(n, k-1) + logHalf)
		if 1-2*tail < level {
			break
		}
		low, confidence, ok = k, 1-2*tail, true
	}
	return low, n + 1 - low, confidence, ok
}

func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

// Quantile returns the q-quantile (0 to 1) of sorted values by linear
// interpolation between order statistics (Hyndman and Fan 1996, type 7, the
// default of R and NumPy); NaN without values.
func Quantile(sorted []float64, q float64) float64 {
	n := len(sorted)
	if n == 0 || math.IsNaN(q) {
		return math.NaN()
	}
	h := min(max(q, 0), 1) * float64(n-1)
	i := int(math.Floor(h))
	if i+1 >= n {
		return sorted[n-1]
	}
	f := h - float64(i)
	if f == 0 {
		return sorted[i]
	}
	// This form stays within the two values and finite for large ones.
	return sorted[i]*(1-f) + sorted[i+1]*f
}

// Median returns the median of values in any order; NaN without values.
func Median(values []float64) float64 {
	return Quantile(slices.Sorted(slices.Values(values)), 0.5)
}

// MeanSD returns the mean and the sample standard deviation (divisor n-1); NaN
// and 0 without values.
func MeanSD(values []float64) (mean, sd float64) {
	n := float64(len(values))
	if n == 0 {
		return math.NaN(), 0
	}
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return mean, 0
	}
	var ss float64
	for _, v := range values {
		ss += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(ss / (n - 1))
}

// Jain returns Jain's fairness index (RFC 5166, section 2.3): 1 when all shares
// are equal, 1/n when one has everything; NaN without values or when all are 0.
func Jain(values []float64) float64 {
	var sum, squares float64
	for _, v := range values {
		sum += v
		squares += v * v
	}
	if squares == 0 {
		return math.NaN()
	}
	return sum * sum / (float64(len(values)) * squares)
}
