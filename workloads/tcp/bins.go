package tcp

import "sync/atomic"

// bins counts bytes by time, each bin exactly as wide as the others; a byte
// belongs to the bin in which it was read. Safe for concurrent adds.
type bins struct {
	t0    int64 // CLOCK_MONOTONIC, ns
	width int64 // ns
	bytes []atomic.Int64
}

// newBins covers [t0, end).
func newBins(t0, end, width int64) *bins {
	n := max((end-t0+width-1)/width, 1)
	return &bins{t0: t0, width: width, bytes: make([]atomic.Int64, n)}
}

// add books n bytes at an instant; one outside the bins is dropped.
func (b *bins) add(now, n int64) {
	if now < b.t0 {
		return
	}
	if i := (now - b.t0) / b.width; i < int64(len(b.bytes)) {
		b.bytes[i].Add(n)
	}
}

// end returns the instant at which bin i ends.
func (b *bins) end(i int) int64 { return b.t0 + int64(i+1)*b.width }

// rate returns bin i's mean rate in bit/s.
func (b *bins) rate(i int) float64 {
	return float64(b.bytes[i].Load()) * 8 * 1e9 / float64(b.width)
}
