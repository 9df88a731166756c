package kinds_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"wirelab/workloads/kinds"
)

//go:generate go test -run TestMetricsPageIsCurrent -update .

var update = flag.Bool("update", false, "write docs/metrics.md")

const page = "../../docs/metrics.md"

func TestMetricsPageIsCurrent(t *testing.T) {
	want := metricsPage()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/metrics.md is not what the code defines: run go generate ./workloads/kinds")
	}
}

// units are the last parts of a metric's name and the units that they stand for.
var units = map[string][]string{
	"bps": {"bit/s"}, "bytes": {"bytes"}, "s": {"s"}, "ratio": {"1"}, "hz": {"1/s"}, "count": nil, // whatever is counted
}

func TestMetricNames(t *testing.T) {
	for _, s := range sections() {
		for _, m := range slices.Concat(s.metrics, s.series) {
			suffix := m.Name[strings.LastIndex(m.Name, "_")+1:]
			allowed, known := units[suffix]
			switch {
			case !known:
				t.Errorf("%s: %s does not end in a unit", s.title, m.Name)
			case allowed != nil && allowed[0] != m.Unit:
				t.Errorf("%s: %s is in %s", s.title, m.Name, m.Unit)
			case m.Definition == "" || !strings.HasSuffix(m.Definition, ".") || m.Source == "":
				t.Errorf("%s: %s is not defined: %+v", s.title, m.Name, m)
			}
		}
	}
}

func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range kinds.Kinds() {
		if seen[k.Name] || k.Doc == "" || len(k.Actors) == 0 {
			t.Errorf("kind %q: twice, undocumented or without actors", k.Name)
		}
		seen[k.Name] = true
		for _, r := range k.New().Roles() {
			if k.Actors[r.Name] == nil {
				t.Errorf("kind %q has no actor for its role %q", k.Name, r.Name)
			}
		}
	}
	for _, want := range []string{"tcp", "ping", "command"} {
		if !seen[want] {
			t.Errorf("no kind %q", want)
		}
	}
}
