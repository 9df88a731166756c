package figure

import (
	"fmt"
	"strings"

	"wirelab/results/stat"
)

// Strip is a small drawing of one cell for a table: every repetition as a
// point, the median as a tick, the interval as a bar, between low and high (in
// the metric's unit). It carries no text; the table's columns do.
func Strip(s stat.Summary, low, high float64) []byte {
	const width, height, pad = 132.0, 16.0, 4.0
	a := axis{from: pad, to: width - pad, min: low, max: high}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="wl st" viewBox="0 0 %s %s" width="%s" height="%s" aria-hidden="true">`, coord(width), coord(height), coord(width), coord(height))
	fmt.Fprintf(&b, `<path class="g" d="M%s 8H%s"/>`, coord(pad), coord(width-pad))
	if s.N > 0 {
		if s.Interval != nil {
			x := a.at(s.Interval.Low)
			fmt.Fprintf(&b, `<rect class="f0 bd" x="%s" y="4" width="%s" height="8"/>`, coord(x), coord(max(1, a.at(s.Interval.High)-x)))
		}
		// Many repetitions are told by the interval; 40 points fill the strip.
		for _, v := range s.Values[:min(len(s.Values), 40)] {
			fmt.Fprintf(&b, `<circle class="f0 fn" cx="%s" cy="8" r="2.2"/>`, coord(a.at(v)))
		}
		x := a.at(s.Median)
		fmt.Fprintf(&b, `<path class="l0 ln" d="M%s 2V14"/>`, coord(x))
	}
	b.WriteString("</svg>")
	return []byte(b.String())
}
