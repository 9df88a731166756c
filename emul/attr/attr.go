// Package attr is the contract between the configuration structs of the
// testbed and workloads, and the language that fills them.
//
// A configuration struct is plain data with field tags:
//
//	Rate unit.Rate `hcl:"rate,optional" default:"10mbit" doc:"Offered load."`
//
// The hcl tag follows gohcl ("name", "name,optional", "name,block",
// "name,label"); doc is the text of the reference; default is the value as a
// user would write it, applied by the decoder when the attribute is absent.
// Anonymous struct fields are flattened. The packages that declare such
// structs never import hcl: they report what is wrong with a value as a
// [Problem] naming the attribute, and experiments/lang turns it into a
// diagnostic with file, line and snippet.
package attr

import (
	"fmt"
	"strings"
)

// Problem says what is wrong with one attribute (or, with an empty Path, with
// the whole block), and what the author can do about it.
type Problem struct {
	// Path names the attribute from the block downwards, for example
	// ["bottleneck", "forward", "rate"].
	Path []string
	// Summary is one short sentence without a final period.
	Summary string
	// Detail says why, and what to write instead.
	Detail string
	// Warning marks a note that does not stop the plan.
	Warning bool
}

// Error implements error.
func (p Problem) Error() string {
	if len(p.Path) == 0 {
		return fmt.Sprintf("%s: %s", p.Summary, p.Detail)
	}
	return fmt.Sprintf("%s: %s: %s", strings.Join(p.Path, "."), p.Summary, p.Detail)
}

// At returns a problem with the attribute at the dotted path.
func At(path, summary, format string, args ...any) Problem {
	p := Problem{Summary: summary, Detail: fmt.Sprintf(format, args...)}
	if path != "" {
		p.Path = strings.Split(path, ".")
	}
	return p
}

// Under returns the problems with their paths moved below prefix.
func Under(prefix string, problems []Problem) []Problem {
	out := make([]Problem, len(problems))
	for i, p := range problems {
		p.Path = append([]string{prefix}, p.Path...)
		out[i] = p
	}
	return out
}
