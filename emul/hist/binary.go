package hist

import (
	"encoding/binary"
	"errors"
	"math"
)

// AppendBinary appends a compact form of the histogram to b: only non-empty
// buckets, as variable-length integers.
func (h *Histogram) AppendBinary(b []byte) []byte {
	b = binary.AppendUvarint(b, h.n)
	if h.n == 0 {
		return b
	}
	b = binary.AppendUvarint(b, math.Float64bits(h.sum))
	b = binary.AppendVarint(b, h.min)
	b = binary.AppendVarint(b, h.max)
	last := 0
	left := h.n
	for i := 0; left > 0 && i < numBuckets; i++ {
		c := h.counts[i]
		if c == 0 {
			continue
		}
		b = binary.AppendUvarint(b, uint64(i-last))
		b = binary.AppendUvarint(b, c)
		last, left = i, left-min(c, left)
	}
	return b
}

var errBinary = errors.New("histogram is damaged")

// DecodeBinary replaces the histogram by what AppendBinary appended, and
// returns the bytes after it.
func (h *Histogram) DecodeBinary(b []byte) ([]byte, error) {
	*h = Histogram{}
	bad := false
	next := func() uint64 {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			bad = true
			return 0
		}
		b = b[n:]
		return v
	}
	signed := func() int64 { // the zigzag form of AppendVarint
		v := next()
		return int64(v>>1) ^ -int64(v&1)
	}
	n := next()
	if bad || n == 0 {
		return b, badOr(bad)
	}
	h.sum = math.Float64frombits(next())
	h.min, h.max = signed(), signed()
	bucket := uint64(0)
	for h.n < n && !bad {
		bucket += next()
		count := next()
		if bad || bucket >= numBuckets || count == 0 || count > n-h.n {
			return nil, errBinary
		}
		h.counts[bucket] += count
		h.n += count
	}
	return b, badOr(bad)
}

func badOr(bad bool) error {
	if bad {
		return errBinary
	}
	return nil
}
