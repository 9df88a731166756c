package probe

import (
	"math"
	"slices"
	"sync"
	"time"

	"wirelab/emul/hist"
)

// tally books requests and replies. It takes the time as an argument. Safe for
// concurrent use.
type tally struct {
	wait                   int64 // ns
	windowBegin, windowEnd int64 // ns: requests sent in between count

	mu       sync.Mutex
	sent     []int64 // send time by request number, ns
	answered []bool
	open     int // requests without a reply
	highest  int // request number of the replies in time, -1 before any
	lateness []float64

	rtts                  []int64 // in the window, ns
	inWindow, late        int
	duplicates, reordered int
	sendErrors            int
}

func newTally(wait time.Duration, windowBegin, windowEnd int64) *tally {
	return &tally{wait: int64(wait), windowBegin: windowBegin, windowEnd: windowEnd, highest: -1}
}

// send books the next request before it is sent, due at an instant, and
// returns its number.
func (t *tally) send(due, now int64) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = append(t.sent, now)
	t.answered = append(t.answered, false)
	t.open++
	if t.counts(now) {
		t.inWindow++
		t.lateness = append(t.lateness, float64(now-due)/1e9)
	}
	return uint64(len(t.sent) - 1)
}

// unsent takes back the last request: the kernel did not take it.
func (t *tally) unsent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.sent) - 1
	if t.counts(t.sent[last]) {
		t.inWindow--
		t.lateness = t.lateness[:len(t.lateness)-1]
		t.sendErrors++
	}
	t.sent, t.answered = t.sent[:last], t.answered[:last]
	t.open--
}

func (t *tally) counts(sent int64) bool { return sent >= t.windowBegin && sent < t.windowEnd }

// reply books a reply and returns when its request was sent and the round-trip
// time; ok is false when it is no first reply in time.
func (t *tally) reply(seq uint64, now int64) (sent, rtt int64, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq >= uint64(len(t.sent)) {
		return 0, 0, false
	}
	i := int(seq)
	sent = t.sent[i]
	inside := t.counts(sent)
	if t.answered[i] {
		if inside {
			t.duplicates++
		}
		return 0, 0, false
	}
	t.answered[i] = true
	t.open--
	rtt = max(0, now-sent)
	if rtt > t.wait { // lost, and what is lost is not reordered (RFC 4737)
		if inside {
			t.late++
		}
		return 0, 0, false
	}
	if i < t.highest && inside {
		t.reordered++
	}
	t.highest = max(t.highest, i)
	if inside {
		t.rtts = append(t.rtts, rtt)
	}
	return sent, rtt, true
}

// settled tells whether nothing that could still count is on its way.
func (t *tally) settled(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == 0 || len(t.sent) == 0 {
		return true
	}
	return now-t.sent[len(t.sent)-1] > t.wait
}

// summary returns the metrics and the histogram of the round-trip times.
func (t *tally) summary() (map[string]float64, *hist.Histogram) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := &hist.Histogram{}
	v := map[string]float64{
		"sent_count": float64(t.inWindow), "received_count": float64(len(t.rtts)),
		"late_count": float64(t.late), "duplicates_count": float64(t.duplicates),
		"reordered_count": float64(t.reordered), "send_errors_count": float64(t.sendErrors),
	}
	if t.inWindow > 0 {
		v["loss_ratio"] = 1 - float64(len(t.rtts))/float64(t.inWindow)
		slices.Sort(t.lateness)
		v["send_lateness_p99_s"] = t.lateness[rank(len(t.lateness), 0.99)]
	}
	n := len(t.rtts)
	if n == 0 {
		return v, h
	}
	sorted := slices.Clone(t.rtts)
	slices.Sort(sorted)
	var sum float64
	for _, ns := range sorted {
		sum += float64(ns)
		h.Record(ns)
	}
	at := func(q float64) float64 { return float64(sorted[rank(n, q)]) / 1e9 }
	least := float64(sorted[0]) / 1e9
	v["rtt_min_s"], v["rtt_mean_s"], v["rtt_max_s"] = least, sum/float64(n)/1e9, float64(sorted[n-1])/1e9
	v["rtt_p50_s"], v["rtt_p90_s"], v["rtt_p95_s"], v["rtt_p99_s"] = at(0.50), at(0.90), at(0.95), at(0.99)
	v["delay_variation_p50_s"], v["delay_variation_p99_s"] = at(0.50)-least, at(0.99)-least
	return v, h
}

// rank is the index of the nearest-rank quantile among n sorted values.
func rank(n int, q float64) int { return min(max(int(math.Ceil(q*float64(n)))-1, 0), n-1) }
