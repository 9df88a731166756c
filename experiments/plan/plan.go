// Package plan orders the runs of an experiment and shows what they will do.
//
// [New] lists all runs in the order they will be made: repetitions outermost,
// so that slow changes of the host spread over all points alike, and within a
// repetition the points shuffled by the seed, so that no point always follows
// the same other. Every run has a hash of all that its outcome depends on in
// the experiment (--reuse compares it), and the plan one over all of them:
// equal files, variables, seed and host facts used give equal plans. The plan
// can be written as text, JSON and as a graph in the DOT language.
package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"wirelab/experiments"
)

// version is hashed with every run: it changes when equal evaluated text would
// no longer mean an equal run.
const version = "wirelab/run/1"

// Plan is all runs of an experiment.
type Plan struct {
	Experiment *experiments.Experiment
	// Runs in the order they will be made.
	Runs []Run
	// Hash is the SHA-256 of everything planned, in hexadecimal.
	Hash string
}

// Run is one repetition of one point.
type Run struct {
	// Index counts runs from 0 in the order of the file: all repetitions of the
	// first point, then of the second. It does not depend on the order in which
	// runs are made.
	Index      int
	Point      int // position in Experiment.Points
	Repetition int // from 0
	Setup      *experiments.Setup
	// Hash identifies the evaluated text, the seed and the host facts used.
	Hash string
}

// New plans an experiment.
func New(x *experiments.Experiment) *Plan {
	p := &Plan{Experiment: x}
	texts := digests{}
	total := sha256.New()
	facts := factsDigest(x.HostFacts)
	fmt.Fprintf(total, "%s\n%q %d %d\n", version, x.Name, x.Seed, x.Repetitions)
	first := make([]int, len(x.Points)) // index of each point's first run
	repetitions := 0
	for i := range x.Points {
		if i > 0 {
			first[i] = first[i-1] + len(x.Points[i-1].Repetitions)
		}
		repetitions = max(repetitions, len(x.Points[i].Repetitions))
	}
	for r := range repetitions {
		for _, i := range shuffled(len(x.Points), x.Seed, r) {
			point := &x.Points[i]
			if r >= len(point.Repetitions) {
				continue
			}
			run := Run{Index: first[i] + r, Point: i, Repetition: r, Setup: &point.Repetitions[r]}
			run.Hash = runHash(texts.of(run.Setup.Text), run.Setup, facts)
			fmt.Fprintf(total, "%d %q %s\n", run.Index, point.ID, run.Hash)
			p.Runs = append(p.Runs, run)
		}
	}
	p.Hash = hex.EncodeToString(total.Sum(nil))
	return p
}

// shuffled returns the points' order of one repetition. The generator is fixed
// (PCG-DXSM) and the shuffle written out, so that a seed gives the same order
// for ever.
func shuffled(n int, seed uint64, repetition int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	source := rand.NewPCG(seed, uint64(repetition))
	for i := n - 1; i > 0; i-- {
		j := int(source.Uint64() % uint64(i+1))
		order[i], order[j] = order[j], order[i]
	}
	return order
}

// digests hashes each text once: repetitions mostly share one.
type digests map[*byte][sha256.Size]byte

func (d digests) of(text []byte) [sha256.Size]byte {
	if len(text) == 0 {
		return sha256.Sum256(nil)
	}
	key := &text[0]
	if h, ok := d[key]; ok {
		return h
	}
	h := sha256.Sum256(text)
	d[key] = h
	return h
}

func factsDigest(facts map[string]string) []byte {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		fmt.Fprintf(h, "%q=%q\n", name, facts[name])
	}
	return h.Sum(nil)
}

func runHash(text [sha256.Size]byte, s *experiments.Setup, facts []byte) string {
	h := sha256.New()
	h.Write([]byte(version))
	h.Write(text[:])
	h.Write(facts)
	writeNumber(h, s.Seed)
	writeNumber(h, uint64(s.Repetition))
	return hex.EncodeToString(h.Sum(nil))
}

func writeNumber(h hash.Hash, n uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	h.Write(b[:])
}

// What a run takes besides its load, for the estimate: building and removing
// the network, starting actors, gathering; and per point the calibration.
const (
	runOverhead   = 600 * time.Millisecond
	pointOverhead = 1500 * time.Millisecond
)

// Estimate is roughly how long all runs take.
func (p *Plan) Estimate() time.Duration {
	d := time.Duration(len(p.Experiment.Points)) * pointOverhead
	for _, r := range p.Runs {
		d += r.Setup.Warmup + r.Setup.Duration + runOverhead
	}
	return d
}
