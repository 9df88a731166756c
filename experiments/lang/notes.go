package lang

import (
	"fmt"
	"strings"
)

// notes collects formulas and doubts that do not stop the plan. The same text
// about several links, or in several points, is told once.
type notes struct {
	point   string
	entries map[string]*note
	order   []string
}

type note struct {
	subjects []string
	seen     map[string]bool
	first    string // point
	last     string
	points   int
}

func newNotes() *notes { return &notes{entries: map[string]*note{}} }

// add notes a text about a subject (a link or workload).
func (n *notes) add(text, subject string) {
	e := n.entries[text]
	if e == nil {
		e = &note{first: n.point, seen: map[string]bool{}}
		n.entries[text] = e
		n.order = append(n.order, text)
	}
	if !e.seen[subject] {
		e.seen[subject] = true
		e.subjects = append(e.subjects, subject)
	}
	if e.points == 0 || e.last != n.point {
		e.points++
		e.last = n.point
	}
}

// list renders the notes of an experiment of n points.
func (n *notes) list(points int) []string {
	var out []string
	for _, text := range n.order {
		e := n.entries[text]
		line := enumerate(e.subjects, 3) + ": " + text
		switch {
		case e.points == points || e.first == "":
		case e.points == 1:
			line += fmt.Sprintf(" (in point %s)", e.first)
		default:
			line += fmt.Sprintf(" (in %d of %d points, first %s)", e.points, points, e.first)
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out
}
