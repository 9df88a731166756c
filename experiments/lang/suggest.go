package lang

import (
	"fmt"
	"slices"
	"strings"
)

// nearest returns the candidate that name was probably meant to be, or "".
// Differences in case, "-" and "_" count as nothing.
func nearest(name string, candidates []string) string {
	best, bestDistance := "", 1+max(1, len(name)/3)
	fold := strings.NewReplacer("-", "", "_", "", " ", "")
	n := fold.Replace(strings.ToLower(name))
	for _, c := range candidates {
		d := distance(n, fold.Replace(strings.ToLower(c)))
		if d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of letters to insert, delete, replace or swap with a
// neighbour that turns a into b (optimal string alignment).
func distance(a, b string) int {
	if a == b {
		return 0
	}
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	previous, current, older := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], older[j-2]+1)
			}
		}
		older, previous, current = previous, current, older
	}
	return previous[len(b)]
}

// remedy completes a sentence about an unknown name: a suggestion where one is
// near, and the known names. what is their plural: "attributes".
func remedy(name, what string, known []string) string {
	known = slices.Clone(known)
	slices.Sort(known)
	known = slices.Compact(known)
	s := ""
	if n := nearest(name, known); n != "" {
		s = fmt.Sprintf("Did you mean %q? ", n)
	}
	if len(known) == 0 {
		return s + fmt.Sprintf("There are no %s.", what)
	}
	return s + fmt.Sprintf("Known %s: %s.", what, enumerate(known, 30))
}

// enumerate joins names with commas, at most limit of them.
func enumerate(names []string, limit int) string {
	if len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// quoted joins names in quotes: "a", "b" or "c".
func quoted(names []string, last string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	if len(q) < 2 {
		return strings.Join(q, "")
	}
	return strings.Join(q[:len(q)-1], ", ") + " " + last + " " + q[len(q)-1]
}
