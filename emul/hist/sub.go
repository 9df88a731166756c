package hist

// Sub takes away the values of o, an earlier state of h, so that h holds what
// was recorded since. Min and Max are then exact only as far as the buckets
// tell, except that a maximum that grew since o is exact. A bucket of which o
// holds more than h (o is no earlier state) becomes empty.
func (h *Histogram) Sub(o *Histogram) {
	if o == nil || o.n == 0 {
		return
	}
	grew := h.max > o.max
	high, low := h.max, int64(-1)
	var n uint64
	for i := range h.counts {
		h.counts[i] -= min(h.counts[i], o.counts[i])
		if h.counts[i] == 0 {
			continue
		}
		n += h.counts[i]
		l, u := bounds(i)
		if low < 0 {
			low = max(l, h.min)
		}
		if !grew {
			high = min(u, h.max)
		}
	}
	if n == 0 {
		h.Reset()
		return
	}
	h.n, h.sum, h.min, h.max = n, max(h.sum-o.sum, 0), low, high
}
