// Package hist is a log-linear histogram of non-negative integers (usually
// nanoseconds) with a bounded relative error, recorded without allocation.
//
// Buckets are exact below 128 and at most 1/64 wide of their value above, as
// in HdrHistogram. A Histogram is not safe for concurrent use.
package hist

import (
	"encoding/json"
	"fmt"
	"math/bits"
)

const (
	subBits    = 6
	subCount   = 1 << subBits
	numBuckets = (64 - subBits + 1) * subCount
)

// Histogram counts values. Its zero value is empty and ready to use.
type Histogram struct {
	counts   [numBuckets]uint64
	n        uint64
	sum      float64
	min, max int64
}

func index(v uint64) int {
	if v < 2*subCount {
		return int(v)
	}
	e := bits.Len64(v) - subBits - 1
	return e*subCount + int(v>>uint(e))
}

// bounds returns the lowest and highest value of bucket i.
func bounds(i int) (int64, int64) {
	if i < 2*subCount {
		return int64(i), int64(i)
	}
	e := i/subCount - 1
	low := int64(i-e*subCount) << uint(e)
	return low, low + int64(1)<<uint(e) - 1
}

// Record counts v; a negative value counts as 0.
func (h *Histogram) Record(v int64) { h.RecordN(v, 1) }

// RecordN counts v n times.
func (h *Histogram) RecordN(v int64, n uint64) {
	if n == 0 {
		return
	}
	v = max(v, 0)
	if h.n == 0 || v < h.min {
		h.min = v
	}
	h.max = max(h.max, v)
	h.counts[index(uint64(v))] += n
	h.n += n
	h.sum += float64(v) * float64(n)
}

// Count is the number of values recorded.
func (h *Histogram) Count() uint64 { return h.n }

// Min and Max are exact; 0 when empty.
func (h *Histogram) Min() int64 { return h.min }

// Max is the largest value recorded.
func (h *Histogram) Max() int64 { return h.max }

// Mean is exact; 0 when empty.
func (h *Histogram) Mean() float64 {
	if h.n == 0 {
		return 0
	}
	return h.sum / float64(h.n)
}

// Quantile returns the value at quantile q in [0, 1] (nearest rank), within
// 1/64 of the true value; 0 when empty.
func (h *Histogram) Quantile(q float64) int64 {
	if h.n == 0 {
		return 0
	}
	rank := uint64(q*float64(h.n) + 0.9999999)
	rank = min(max(rank, 1), h.n)
	var seen uint64
	for i, c := range h.counts {
		seen += c
		if seen >= rank {
			low, high := bounds(i)
			return min(max(low+(high-low)/2, h.min), h.max)
		}
	}
	return h.max
}

// Merge adds the values of o.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil || o.n == 0 {
		return
	}
	if h.n == 0 || o.min < h.min {
		h.min = o.min
	}
	h.max = max(h.max, o.max)
	h.n += o.n
	h.sum += o.sum
	for i, c := range o.counts {
		h.counts[i] += c
	}
}

// Reset empties the histogram.
func (h *Histogram) Reset() { *h = Histogram{} }

// Bucket is one non-empty bucket: values from Low to High, both included.
type Bucket struct {
	Low, High int64
	Count     uint64
}

// Buckets returns the non-empty buckets in ascending order.
func (h *Histogram) Buckets() []Bucket {
	var out []Bucket
	for i, c := range h.counts {
		if c > 0 {
			low, high := bounds(i)
			out = append(out, Bucket{low, high, c})
		}
	}
	return out
}

type encoded struct {
	N       uint64      `json:"n"`
	Sum     float64     `json:"sum"`
	Min     int64       `json:"min"`
	Max     int64       `json:"max"`
	Buckets [][2]uint64 `json:"buckets"` // bucket number, count
}

// MarshalJSON writes the non-empty buckets.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	e := encoded{N: h.n, Sum: h.sum, Min: h.min, Max: h.max, Buckets: [][2]uint64{}}
	for i, c := range h.counts {
		if c > 0 {
			e.Buckets = append(e.Buckets, [2]uint64{uint64(i), c})
		}
	}
	return json.Marshal(e)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var e encoded
	if err := json.Unmarshal(b, &e); err != nil {
		return err
	}
	*h = Histogram{n: e.N, sum: e.Sum, min: e.Min, max: e.Max}
	var n uint64
	for _, p := range e.Buckets {
		if p[0] >= numBuckets {
			return fmt.Errorf("histogram bucket %d is out of range", p[0])
		}
		h.counts[p[0]] += p[1]
		n += p[1]
	}
	if n != e.N {
		return fmt.Errorf("histogram holds %d values but says %d", n, e.N)
	}
	return nil
}
