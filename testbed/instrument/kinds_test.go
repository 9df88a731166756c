package instrument

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"wirelab/emul/unit"
	"wirelab/results"
)

// metricName is QUANTITY[_STATISTIC]_UNIT; units maps the last part to the
// unit it stands for.
var (
	metricName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	metricUnit = map[string][]string{
		"s": {"s"}, "bps": {"bit/s"}, "bytes": {"bytes"}, "ratio": {"1"}, "hz": {"1/s"}, "count": {"packets", "events", "flows"},
	}
)

func checkMetrics(t *testing.T, of string, defs []results.MetricDef) {
	t.Helper()
	seen := map[string]bool{}
	for _, d := range defs {
		last := d.Name[strings.LastIndexByte(d.Name, '_')+1:]
		if !metricName.MatchString(d.Name) || !strings.Contains(strings.Join(metricUnit[last], " "), d.Unit) || d.Unit == "" {
			t.Errorf("%s: metric %q has unit %q", of, d.Name, d.Unit)
		}
		if d.Definition == "" || d.Source == "" || seen[d.Name] {
			t.Errorf("%s: metric %q has no definition or source, or is there twice", of, d.Name)
		}
		seen[d.Name] = true
	}
}

func TestKindsAreWhatTheyDocument(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds() {
		if k.Name == "" || k.Doc == "" || seen[k.Name] {
			t.Errorf("kind %q has no doc or is there twice", k.Name)
		}
		seen[k.Name] = true
		i := k.New()
		if k.New() == i {
			t.Errorf("kind %s: New gives a shared instrument", k.Name)
		}
		checkMetrics(t, k.Name, i.Metrics())
		checkDefaults(t, k.Name, reflect.ValueOf(i).Elem())
	}
	for _, d := range Defaults() {
		if !seen[d.Kind] {
			t.Errorf("default %s is of the unknown kind %s", d.Name, d.Kind)
		}
		for _, k := range Kinds() {
			if k.Name == d.Kind && len(k.New().Validate()) != 0 {
				t.Errorf("default %s does not validate", d.Name)
			}
		}
	}
	checkMetrics(t, "link", LinkMetrics(true))
	checkMetrics(t, "bare link", BareLinkMetrics())
}

// checkDefaults compares the defaults in a struct's tags with its fields.
func checkDefaults(t *testing.T, kind string, v reflect.Value) {
	t.Helper()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			checkDefaults(t, kind, v.Field(i))
			continue
		}
		if f.Tag.Get("doc") == "" || !strings.HasSuffix(f.Tag.Get("hcl"), ",optional") {
			t.Errorf("%s.%s: tags %q", kind, f.Name, f.Tag)
		}
		text, has := f.Tag.Lookup("default")
		if !has {
			if !v.Field(i).IsZero() {
				t.Errorf("%s.%s has a default that its tag does not tell", kind, f.Name)
			}
			continue
		}
		if got := fmt.Sprint(v.Field(i).Interface()); got != parsedDefault(t, v.Field(i).Interface(), text) {
			t.Errorf("%s.%s is %s, its tag says %s", kind, f.Name, got, text)
		}
	}
}

// parsedDefault reads a default's text as the type of like.
func parsedDefault(t *testing.T, like any, text string) string {
	t.Helper()
	var v any
	var err error
	switch like.(type) {
	case time.Duration:
		v, err = unit.ParseDuration(text)
	case unit.Size:
		v, err = unit.ParseSize(text)
	case unit.Ratio:
		v, err = unit.ParseRatio(text)
	case []string:
		v = strings.Fields(strings.NewReplacer(`"`, "", ",", " ", "[", "", "]", "").Replace(text))
	default:
		v = text
	}
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprint(v)
}

func TestValidateBoundsAttributes(t *testing.T) {
	for name, i := range map[string]Instrument{
		"interval of core_load": &CoreLoad{Interval: 0, MaxSteal: 0.1},
		"steal":                 &CoreLoad{Interval: time.Second, MaxSteal: 1.1},
		"wait":                  &CoreLoad{Interval: time.Second, NoteWait: -1},
		"interval of backlog":   &Backlog{Interval: time.Hour},
		"interval of tcp_info":  &TCPInfo{Interval: time.Microsecond},
		"interval of perf":      &Perf{Interval: time.Microsecond, Events: []string{"cs"}, Per: "core"},
		"no events":             &Perf{Per: "core"},
	} {
		if p := i.Validate(); len(p) != 1 || len(p[0].Path) != 1 {
			t.Errorf("%s: problems %v, want one", name, p)
		}
	}
}
