package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"wirelab/experiments/lang"
)

func newFmt(s Streams) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "fmt [FILE|DIR...]",
		Short: "Write experiments in the canonical form; comments stay",
		Long: `Write experiments in the canonical form, in place; comments stay. Prints the
names of the files that changed. Without an argument, all .hcl files of this
folder; with "-", standard input to standard output.`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{"."}
			}
			return format(s, args, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "change nothing; exit with status 1 if a file would change")
	return cmd
}

func format(s Streams, args []string, check bool) error {
	changed := 0
	for _, arg := range args {
		if arg == "-" {
			return formatStream(s)
		}
		files := []string{arg}
		if info, err := os.Stat(arg); err == nil && info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(arg, "*.hcl")); err != nil {
				return exit(exitFile, err)
			}
			if len(files) == 0 {
				return exit(exitFile, fmt.Errorf("no .hcl files in %s", arg))
			}
		}
		for _, f := range files {
			did, err := formatFile(s, f, check)
			if err != nil {
				return err
			}
			if did {
				changed++
			}
		}
	}
	if check && changed > 0 {
		return exit(exitJudgement, fmt.Errorf("%s would change; run wirelab fmt", plural(changed, "file")))
	}
	return nil
}

func formatStream(s Streams) error {
	src, err := io.ReadAll(s.In)
	if err != nil {
		return exit(exitFile, err)
	}
	out, diags := lang.Format("<stdin>", src)
	if err := showDiagnostics(s, diags); err != nil {
		return err
	}
	_, err = s.Out.Write(out)
	return err
}

// formatFile rewrites one file if it is not in canonical form.
func formatFile(s Streams, path string, check bool) (changed bool, err error) {
	// A link stays one: what it leads to is rewritten.
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false, exit(exitFile, err)
	}
	src, err := os.ReadFile(target)
	if err != nil {
		return false, exit(exitFile, err)
	}
	out, diags := lang.Format(path, src)
	if err := showDiagnostics(s, diags); err != nil {
		return false, err
	}
	if bytes.Equal(src, out) {
		return false, nil
	}
	fmt.Fprintln(s.Out, path)
	if check {
		return true, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return false, exit(exitFile, err)
	}
	// Written beside and renamed: a full disk must not cost the file.
	tmp := target + ".wirelab-fmt"
	if err := os.WriteFile(tmp, out, info.Mode().Perm()); err != nil {
		os.Remove(tmp)
		return false, exit(exitFile, fmt.Errorf("format %s: %w", path, err))
	}
	if err := os.Rename(tmp, target); err != nil {
		os.Remove(tmp)
		return false, exit(exitFile, fmt.Errorf("format %s: %w", path, err))
	}
	return true, nil
}
