package plan_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"wirelab/experiments/lang"
	"wirelab/experiments/plan"
)

const head = `
experiment "large" { duration = "10s" }
`

// dynamicGraph makes 1000 nodes in a row and the 999 links between them by
// dynamic blocks.
const dynamicGraph = head + `
dynamic "node" {
  for_each = range(1000)
  labels   = ["n${node.value}"]
  content {
    kind = node.value == 0 || node.value == 999 ? "host" : "router"
  }
}

dynamic "link" {
  for_each = range(999)
  labels   = ["l${link.value}"]
  content {
    between = ["n${link.value}", "n${link.value + 1}"]
    rate    = "100mbit"
    delay   = "1ms"
  }
}

workload "tcp" "bulk" {
  from = "n0"
  to   = "n999"
}
`

// literalGraph is the same with every block written out.
func literalGraph() string {
	var b strings.Builder
	b.WriteString(head)
	for i := range 1000 {
		kind := "router"
		if i == 0 || i == 999 {
			kind = "host"
		}
		fmt.Fprintf(&b, "node \"n%d\" {\n  kind = %q\n}\n\n", i, kind)
	}
	for i := range 999 {
		fmt.Fprintf(&b, "link \"l%d\" {\n  between = [\"n%d\", \"n%d\"]\n  rate    = \"100mbit\"\n  delay   = \"1ms\"\n}\n\n", i, i, i+1)
	}
	b.WriteString("workload \"tcp\" \"bulk\" {\n  from = \"n0\"\n  to   = \"n999\"\n}\n")
	return b.String()
}

// planText does all that the plan verb does.
func planText(t testing.TB, text string, w io.Writer) *plan.Plan {
	t.Helper()
	x, _, diags := lang.Load([]string{"x.hcl"}, lang.Options{FS: fstest.MapFS{"x.hcl": {Data: []byte(text)}}})
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	p := plan.New(x)
	if err := p.WriteText(w); err != nil {
		t.Fatal(err)
	}
	return p
}

// BenchmarkPlan plans 1000 nodes and 999 links; the bar is 300 ms.
func BenchmarkPlan(b *testing.B) {
	for name, text := range map[string]string{"dynamic": dynamicGraph, "literal": literalGraph()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				planText(b, text, io.Discard)
			}
		})
	}
}
