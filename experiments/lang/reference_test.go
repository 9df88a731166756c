package lang

import (
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files and docs/language.md")

const referencePath = "../../docs/language.md"

// TestReferenceIsCurrent compares docs/language.md with what the structs say.
func TestReferenceIsCurrent(t *testing.T) {
	want := Reference(Kinds{})
	if *update {
		if err := os.WriteFile(referencePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatalf("%v; write it with go test ./experiments/lang -run TestReferenceIsCurrent -update", err)
	}
	if d := cmp.Diff(string(have), want); d != "" {
		t.Errorf("docs/language.md is out of date, run go test ./experiments/lang -run TestReferenceIsCurrent -update (-have +want):\n%s", d)
	}
}

// TestEveryAttributeIsDocumented wants a text for every attribute, default
// texts that fit their type, and blocks that the decoder understands.
func TestEveryAttributeIsDocumented(t *testing.T) {
	k := BuiltIn()
	structs := map[string]any{
		"experiment": &experimentBlock{}, "variable": &variableBlock{}, "exclude": &excludeBlock{}, "node": &nodeBlock{},
		"link": &linkBlock{}, "check": &checkBlock{}, "claim": &claimBlock{}, "figure": &figureBlock{},
	}
	for _, x := range k.Topologies {
		structs["topology "+x.Name] = x.New()
	}
	for _, x := range k.Workloads {
		structs["workload "+x.Name] = x.New()
	}
	for _, x := range k.Instruments {
		structs["instrument "+x.Name] = x.New()
	}
	var walk func(name string, s *schema)
	seen := map[reflect.Type]bool{}
	walk = func(name string, s *schema) {
		if seen[s.typ] {
			return
		}
		seen[s.typ] = true
		setDefaults(s, reflect.New(s.typ).Elem()) // panics on a bad default
		for _, f := range s.fields {
			if f.role != roleLabel && (f.doc == "" || !strings.ContainsAny(f.doc[len(f.doc)-1:], ".)")) {
				t.Errorf("%s: attribute %s has no text, or one without a period: %q", name, f.name, f.doc)
			}
			if f.schema != nil {
				walk(name+" "+f.name, f.schema)
			}
		}
	}
	for name, x := range structs {
		walk(name, schemaOf(reflect.TypeOf(x).Elem()))
	}
}
