package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// module is the prefix of our own import paths.
const module = "wirelab/"

// root is the top of the repository, seen from this package.
const root = "../.."

// rule forbids an import to all packages but a few.
type rule struct {
	imports string   // prefix of the import path
	only    []string // folders (with everything below) that may import it
	reason  string
}

var onlyRules = []rule{
	{"github.com/hashicorp/hcl", []string{"experiments/lang"}, "the language stops at experiments/lang: all else works on plain structs"},
	{"github.com/zclconf/go-cty", []string{"experiments/lang"}, "values of the language stop at experiments/lang"},
	{"github.com/containernetworking/plugins/pkg/ns", []string{"testbed/netns"}, "entering a namespace is thread work done right in one place"},
	{"github.com/vishvananda/netns", []string{"testbed/netns"}, "entering a namespace is thread work done right in one place"},
	{module + "testbed/netns", []string{"testbed"}, "actors already live in their namespace; everyone else asks testbed"},
	{"github.com/vishvananda/netlink", []string{"testbed", "testbed/instrument", "emul/kernel", "workloads/tcp/tuner"}, "kernel network state is changed in few places, each with an undo"},
	{"github.com/parquet-go", []string{"results/store"}, "the file format is the store's own business"},
	{"github.com/spf13", []string{"cmd"}, "only cmd reads flags"},
}

// floors are the layers from the ground; a package imports none above its own
// and none of another folder on its own floor.
var floors = map[string]int{"emul": 0, "results": 0, "testbed": 1, "workloads": 1, "experiments": 2, "cmd": 3}

// leaves may be imported by anyone, whatever the floor, and import nothing of
// ours but each other.
var leaves = []string{"emul/unit", "emul/attr", "emul/hist", "emul/vtime", "emul/wire", "testbed/journal", "testbed/bpf"}

type goFile struct {
	path, dir string
	imports   []string
	doc       bool
}

// goFiles parses every Go file of the repository (tests left out unless asked).
func goFiles(t *testing.T, tests bool) []goFile {
	t.Helper()
	var out []goFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") && !tests {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		g := goFile{path: rel, dir: filepath.ToSlash(filepath.Dir(rel)), doc: f.Doc != nil}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			g.imports = append(g.imports, p)
		}
		out = append(out, g)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("found only %d Go files below %s", len(out), root)
	}
	return out
}

func below(dir string, folders []string) bool {
	for _, f := range folders {
		if dir == f || strings.HasPrefix(dir, f+"/") {
			return true
		}
	}
	return false
}

// allowed tells whether dir is one of the folders a rule names. "testbed"
// means that package alone for netlink, and everything below it for netns.
func (r rule) allowed(dir string) bool {
	if strings.Contains(r.imports, "netlink") {
		for _, f := range r.only {
			if dir == f {
				return true
			}
		}
		return false
	}
	return below(dir, r.only)
}

// TestImports keeps the arrows between packages pointing down.
func TestImports(t *testing.T) {
	for _, f := range goFiles(t, false) {
		for _, imp := range f.imports {
			for _, r := range onlyRules {
				if strings.HasPrefix(imp, r.imports) && !r.allowed(f.dir) {
					t.Errorf("%s imports %s: only %v may: %s", f.path, imp, r.only, r.reason)
				}
			}
			ours, ok := strings.CutPrefix(imp, module)
			if !ok {
				continue
			}
			checkFloor(t, f, ours)
		}
	}
}

func checkFloor(t *testing.T, f goFile, imp string) {
	if below(imp, leaves) {
		return
	}
	if below(f.dir, leaves) {
		t.Errorf("%s imports %s: a leaf imports only leaves, so that anyone may import it", f.path, imp)
		return
	}
	from, _, _ := strings.Cut(f.dir, "/")
	to, _, _ := strings.Cut(imp, "/")
	if from == to {
		return
	}
	if floors[to] >= floors[from] {
		t.Errorf("%s imports %s: %s stands on the same floor as %s or below it", f.path, imp, from, to)
	}
}

// TestPackageComments wants exactly one package comment per package.
func TestPackageComments(t *testing.T) {
	docs, seen := map[string][]string{}, map[string]bool{}
	for _, f := range goFiles(t, false) {
		seen[f.dir] = true
		if f.doc {
			docs[f.dir] = append(docs[f.dir], f.path)
		}
	}
	for dir := range seen {
		if n := len(docs[dir]); n != 1 {
			t.Errorf("package %s has %d package comments %v, want one", dir, n, docs[dir])
		}
	}
}
