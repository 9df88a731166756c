// Package claim judges the claims of an experiment over its valid runs.
//
// A claim's value and condition come from the language as functions; this
// package draws the bootstrap and gives the verdict. The bootstrap draws
// repetition indices, the same in every point, 2000 times, seeded: the claim
// holds when its condition is true on the point estimate and in at least
// 97.5 % of the resamples, fails when it is false in at least 97.5 %, and is
// undecided otherwise.
package claim

import "wirelab/results"

// Claim is a statement about the whole experiment.
type Claim struct {
	Name string
	// Published is the value in the source, as the author wrote it.
	Published string
	Source    string
	// NoInterval is interval = "none": deterministic values, judged once.
	NoInterval bool
	// NotTestable, if not empty, says why the claim cannot be tested here
	// (requires = … was false).
	NotTestable string
	// Eval computes value and condition over runs (a resample may hold the
	// same run several times). Value may be nil when the claim has none.
	Eval func(runs []*results.Run) (Estimate, error)
}

// Estimate is a claim evaluated over one set of runs.
type Estimate struct {
	Value     *float64
	Condition bool
	// Used, if not nil, are the runs that the value rests on (those where the
	// aggregates' conditions were true): only their points must have enough
	// valid repetitions. Nil means all.
	Used []*results.Run
}
