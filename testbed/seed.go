package testbed

import "hash/fnv"

// linkSeed derives the seed of a link from that of the run, so that links draw
// independently and adding one does not change the others.
func linkSeed(run uint64, link string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(link))
	x := h.Sum64() ^ run*0x9e3779b97f4a7c15
	// The finisher of SplitMix64 spreads the bits.
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
