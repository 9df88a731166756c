package stage

// Bernoulli loses each segment independently with one probability.
type Bernoulli struct {
	stream Stream
	below  uint64
	always bool
}

// NewBernoulli returns the loss with probability p in [0, 1].
func NewBernoulli(s Stream, p float64) *Bernoulli {
	b := &Bernoulli{stream: s}
	b.below, b.always = threshold(p)
	return b
}

// Drop implements [Dropper].
func (b *Bernoulli) Drop(index uint64) bool {
	return b.always || b.stream.At(index) < b.below
}

var _ Dropper = (*Bernoulli)(nil)
