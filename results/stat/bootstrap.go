package stat

import (
	"math/rand/v2"
	"slices"
)

// Resamples is the number of bootstrap resamples that verdicts rest on.
const Resamples = 2000

// Bootstrap calls use with count resamples of the indices 0 to n-1, each n
// draws with replacement. Equal seeds give equal draws. The slice is used
// again for the next resample and must not be kept.
func Bootstrap(n, count int, seed uint64, use func(draw []int)) {
	rng := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	draw := make([]int, n)
	for range count {
		for i := range draw {
			draw[i] = rng.IntN(n)
		}
		use(draw)
	}
}

// PercentileInterval returns the 2.5 % and 97.5 % quantiles of bootstrap
// values (Efron and Tibshirani 1993, chapter 13); NaN without values.
func PercentileInterval(values []float64) (low, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	return Quantile(sorted, (1-Level)/2), Quantile(sorted, (1+Level)/2)
}
