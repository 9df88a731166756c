// Package library holds ready experiments, one NAME.hcl each, embedded in the
// binary so that `wirelab run NAME` works anywhere. Each is planned in a test
// and run in its smoke size by CI; each says in its first comment what it
// shows and where the idea comes from.
package library

import (
	"embed"
	"fmt"
	"io/fs"
	"sort"
	"strings"
)

//go:embed *.hcl
var files embed.FS

// Names lists the ready experiments in alphabetical order.
func Names() []string {
	entries, err := fs.Glob(files, "*.hcl")
	if err != nil {
		// The pattern is constant; a bad one is a bug of ours.
		panic(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e, ".hcl")
	}
	sort.Strings(names)
	return names
}

// Files is the file system that holds the ready experiments as NAME.hcl.
func Files() fs.FS { return files }

// Has reports whether there is a ready experiment of that name.
func Has(name string) bool {
	_, err := fs.Stat(files, name+".hcl")
	return err == nil
}

// Source returns the text of a ready experiment, and its file name for
// diagnostics. An unknown name lists the known ones.
func Source(name string) (src []byte, file string, err error) {
	file = name + ".hcl"
	src, err = files.ReadFile(file)
	if err != nil {
		return nil, "", fmt.Errorf("no ready experiment %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return src, file, nil
}

// Summary returns the first comment of a ready experiment, as one line.
func Summary(name string) string {
	src, _, err := Source(name)
	if err != nil {
		return ""
	}
	var words []string
	for line := range strings.Lines(string(src)) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok || strings.TrimSpace(text) == "" {
			break
		}
		words = append(words, strings.TrimSpace(text))
	}
	return strings.Join(words, " ")
}
