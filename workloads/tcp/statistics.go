package tcp

import (
	"math"
	"slices"
)

// addStatistics adds mean, quantiles and maximum of values as
// QUANTITY_STATISTIC_UNIT; nothing when there are none. It sorts values.
func addStatistics(into map[string]float64, quantity, unit string, values []float64) {
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	var sum float64
	for _, v := range values {
		sum += v
	}
	put := func(statistic string, v float64) { into[quantity+"_"+statistic+"_"+unit] = v }
	put("mean", sum/float64(len(values)))
	put("p50", quantile(values, 0.50))
	put("p95", quantile(values, 0.95))
	put("p99", quantile(values, 0.99))
	put("max", values[len(values)-1])
}

// quantile returns the nearest-rank quantile of sorted values.
func quantile(sorted []float64, q float64) float64 {
	i := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}

// jain returns Jain's fairness index of shares (RFC 5166, section 2.3): 1 when
// all are equal, 1/n when one has everything; 0 without any.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, s := range shares {
		sum += s
		squares += s * s
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(shares)) * squares)
}
