package instrument

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// perfEvent is one event that the kernel can count (perf_event_open(2)).
type perfEvent struct {
	name   string // as in `perf list`
	kind   uint32 // PERF_TYPE_…
	config uint64
}

// The types of event.
const (
	perfHardware = 0
	perfSoftware = 1
	perfCache    = 3
	perfRaw      = 4
)

// plainEvents are the kernel's software and generic hardware events by number.
var plainEvents = []perfEvent{
	{"cpu-clock", perfSoftware, 0},
	{"task-clock", perfSoftware, 1},
	{"page-faults", perfSoftware, 2},
	{"context-switches", perfSoftware, 3},
	{"cpu-migrations", perfSoftware, 4},
	{"minor-faults", perfSoftware, 5},
	{"major-faults", perfSoftware, 6},
	{"alignment-faults", perfSoftware, 7},
	{"emulation-faults", perfSoftware, 8},
	{"cycles", perfHardware, 0},
	{"instructions", perfHardware, 1},
	{"cache-references", perfHardware, 2},
	{"cache-misses", perfHardware, 3},
	{"branches", perfHardware, 4},
	{"branch-misses", perfHardware, 5},
	{"bus-cycles", perfHardware, 6},
	{"stalled-cycles-frontend", perfHardware, 7},
	{"stalled-cycles-backend", perfHardware, 8},
	{"ref-cycles", perfHardware, 9},
}

// The caches of PERF_TYPE_HW_CACHE, and what is done with them: an event's
// configuration is cache | operation << 8 | result << 16.
var (
	perfCaches = []string{"L1-dcache", "L1-icache", "LLC", "dTLB", "iTLB", "branch", "node"}
	perfOps    = [][2]string{{"loads", "load-misses"}, {"stores", "store-misses"}, {"prefetches", "prefetch-misses"}}
)

// perfEvents lists every named event.
func perfEvents() []perfEvent {
	out := slices.Clone(plainEvents)
	for cache, prefix := range perfCaches {
		for op, names := range perfOps {
			for result, name := range names {
				out = append(out, perfEvent{prefix + "-" + name, perfCache, uint64(cache | op<<8 | result<<16)})
			}
		}
	}
	return out
}

// perfAliases are the other names that perf itself takes.
var perfAliases = map[string]string{
	"cpu-cycles": "cycles", "branch-instructions": "branches", "faults": "page-faults", "cs": "context-switches", "migrations": "cpu-migrations",
}

// findEvent looks an event up by its name, or as rNNNN, a raw event of the
// processor in hexadecimal.
func findEvent(name string) (perfEvent, bool) {
	if full, ok := perfAliases[name]; ok {
		name = full
	}
	for _, e := range perfEvents() {
		if e.name == name {
			return e, true
		}
	}
	if hex, ok := strings.CutPrefix(name, "r"); ok && len(hex) >= 1 {
		if config, err := strconv.ParseUint(hex, 16, 64); err == nil {
			return perfEvent{name, perfRaw, config}, true
		}
	}
	return perfEvent{}, false
}

// nearEvents lists the events whose names are closest to a mistaken one.
func nearEvents(name string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	for _, e := range perfEvents() {
		d := editDistance(strings.ToLower(name), strings.ToLower(e.name))
		if d <= max(2, len(name)/3) || len(name) >= 4 && strings.Contains(e.name, name) {
			found = append(found, near{e.name, d})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.distance - b.distance })
	var out []string
	for _, n := range found[:min(len(found), 4)] {
		out = append(out, n.name)
	}
	return out
}

// editDistance is Levenshtein's.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}

// inSeconds reports whether the event counts nanoseconds.
func (e perfEvent) inSeconds() bool {
	return e.kind == perfSoftware && e.config <= 1
}

// metric is the name of the event's metric.
func (e perfEvent) metric() string {
	n := strings.ToLower(strings.ReplaceAll(e.name, "-", "_"))
	if e.inSeconds() {
		return n + "_s"
	}
	return n + "_count"
}

// source says where the count comes from.
func (e perfEvent) source() string {
	switch e.kind {
	case perfSoftware:
		return "perf_event_open(2), software event of the kernel"
	case perfRaw:
		return fmt.Sprintf("perf_event_open(2), raw event %#x of this processor", e.config)
	}
	return "perf_event_open(2), counter of the processor"
}

// perfRatio is a metric made from two events: 1 - part/whole, or part/whole.
type perfRatio struct {
	name, part, whole string
	definition        string
	complement        bool
}

// perfRatios exist where both of their events do.
func perfRatios() []perfRatio {
	out := []perfRatio{
		{"cache_hit_ratio", "cache-misses", "cache-references", "Share of the cache references that did not miss. Which cache is meant depends on the processor: the last level on Intel, the second on AMD.", true},
		{"branch_hit_ratio", "branch-misses", "branches", "Share of the branches that were predicted.", true},
		{"instructions_per_cycle_ratio", "instructions", "cycles", "Instructions per cycle.", false},
	}
	for _, prefix := range perfCaches {
		if prefix == "branch" {
			continue
		}
		for _, op := range perfOps {
			verb := strings.TrimSuffix(op[1], "-misses")
			name := strings.ReplaceAll(strings.ToLower(prefix)+"_"+verb+"_hit_ratio", "-", "_")
			out = append(out, perfRatio{name, prefix + "-" + op[1], prefix + "-" + op[0], "Share of the " + op[0] + " that did not miss the " + prefix + ".", true})
		}
	}
	return out
}
