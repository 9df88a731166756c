package emul

import (
	"fmt"
	"strings"
)

// String tells what the impairment does, for people, in the order in which a
// packet meets the stages; "none" for the zero value.
func (i Impairment) String() string {
	var parts []string
	if i.Rate > 0 {
		parts = append(parts, i.Rate.String())
		aqm := i.AQM
		if aqm == "" {
			aqm = "droptail"
		}
		if !i.Queue.IsZero() {
			parts = append(parts, fmt.Sprintf("queue %s %s", i.Queue, aqm))
		}
	}
	if i.Loss > 0 {
		parts = append(parts, fmt.Sprintf("loss %s", i.Loss))
	}
	if i.Delay > 0 || i.Jitter > 0 {
		text := fmt.Sprintf("delay %s", i.Delay)
		if i.Jitter > 0 {
			d := i.Distribution
			if d == "" {
				d = "uniform"
			}
			text += fmt.Sprintf(" ± %s %s", i.Jitter, d)
			if i.JitterReorders {
				text += ", may reorder"
			}
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
