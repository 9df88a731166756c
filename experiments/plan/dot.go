package plan

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"wirelab/testbed"
)

// WriteGraph writes the first point's topology in the DOT language of
// Graphviz, with its workloads as arrows.
func (p *Plan) WriteGraph(w io.Writer) error {
	var b strings.Builder
	x := p.Experiment
	fmt.Fprintf(&b, "digraph %s {\n", strconv.Quote(x.Name))
	b.WriteString("  graph [rankdir=LR];\n  node [shape=ellipse];\n  edge [dir=none];\n")
	if s := firstSetup(x); s != nil {
		if s.Topology != nil {
			writeTopology(&b, s.Topology)
		}
		for _, k := range s.Workloads {
			if c := k.Config.Common(); c.From != "" && c.To != "" {
				fmt.Fprintf(&b, "  %s -> %s [dir=forward, style=dashed, constraint=false, label=%s];\n",
					strconv.Quote(c.From), strconv.Quote(c.To), strconv.Quote(k.Name+" ("+k.Kind+")"))
			}
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

var shapes = map[testbed.NodeKind]string{
	testbed.KindHost: "ellipse", testbed.KindRouter: "box", testbed.KindBridge: "hexagon",
}

func writeTopology(b *strings.Builder, t *testbed.Topology) {
	for _, n := range t.Nodes {
		fmt.Fprintf(b, "  %s [shape=%s];\n", strconv.Quote(n.Name), shapes[n.Kind])
	}
	for i := range t.Links {
		l := &t.Links[i]
		label := l.Name
		switch {
		case l.Forward.IsZero() && l.Reverse.IsZero():
		case l.Forward == l.Reverse:
			label += "\n" + l.Forward.String()
		default:
			label += "\n-> " + l.Forward.String() + "\n<- " + l.Reverse.String()
		}
		fmt.Fprintf(b, "  %s -> %s [label=%s];\n", strconv.Quote(l.A), strconv.Quote(l.B), strconv.Quote(label))
	}
}
