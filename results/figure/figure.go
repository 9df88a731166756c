// Package figure draws figures of an experiment as SVG.
package figure

// Figure is a figure block, decoded.
type Figure struct {
	Name  string
	Title string
	// Kind: "line" (metric against a sweep variable) or "time" (samples
	// against time).
	Kind string
	// X is the sweep variable of a line figure.
	X string
	// Y are metric paths ("cubic.goodput_bps").
	Y []string
	// By, optional, is a sweep variable that splits each Y into one line per
	// value.
	By   string
	LogX bool
	LogY bool
}
