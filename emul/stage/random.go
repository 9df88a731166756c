package stage

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/bits"
)

// Stream is a random sequence that is read by index: draw i depends on the
// stream and on i only, so every segment has exactly one draw per stage
// whatever happened to the others, and skipping segments costs nothing. It is
// counter-based: two differently keyed SplitMix64 generators (Steele, Lea,
// Flood 2014), combined, are asked for their i-th output.
type Stream struct{ key, tweak uint64 }

// NewStream returns the stream of one stage ("loss", "jitter") in one
// direction ("forward", "reverse") of a link.
func NewStream(seed uint64, link, direction, stage string) Stream {
	h := fnv.New128a()
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	h.Write(b[:])
	for _, s := range []string{link, direction, stage} {
		binary.LittleEndian.PutUint64(b[:], uint64(len(s)))
		h.Write(b[:])
		h.Write([]byte(s))
	}
	sum := h.Sum(nil)
	// FNV mixes its last bytes badly; the finisher makes good for it.
	hi, lo := binary.BigEndian.Uint64(sum), binary.BigEndian.Uint64(sum[8:])
	return Stream{key: mix(hi ^ bits.RotateLeft64(mix(lo), 32)), tweak: mix(lo) | 1}
}

// mix is the finisher of SplitMix64.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// At returns draw i, uniform over 64 bits.
func (s Stream) At(i uint64) uint64 { return mix(s.key+i*0x9e3779b97f4a7c15) ^ mix(s.tweak^i) }

// Float returns draw i, uniform in (0, 1).
func (s Stream) Float(i uint64) float64 {
	return (float64(s.At(i)>>11) + 0.5) / (1 << 53)
}

// threshold turns a probability into the number of 64-bit draws below it;
// always is set for 1.
func threshold(p float64) (below uint64, always bool) {
	if p >= 1 {
		return 0, true
	}
	return uint64(math.Ldexp(max(p, 0), 64)), false
}
