package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"wirelab/experiments/library"
)

func newInit(s Streams) *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "init [FILE]",
		Short: "Write an experiment to start from",
		Long: `Write an experiment to start from: a copy of a ready one (--from NAME, by
default quickstart) under the name of FILE, which must not exist yet.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			path := "experiment.hcl"
			if len(args) == 1 {
				path = args[0]
			}
			return initFile(s, path, from)
		},
	}
	cmd.Flags().StringVar(&from, "from", "quickstart", "ready experiment to copy (`NAME`); see `wirelab list`")
	return cmd
}

func initFile(s Streams, path, from string) error {
	if !strings.HasSuffix(path, ".hcl") {
		path += ".hcl"
	}
	src, _, err := library.Source(from)
	if err != nil {
		return exit(exitFile, err)
	}
	name := strings.TrimSuffix(filepath.Base(path), ".hcl")
	text := strings.Replace(string(src), fmt.Sprintf("experiment %q", from), fmt.Sprintf("experiment %q", name), 1)
	// O_EXCL: a file that someone wrote is never overwritten.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return exit(exitFile, fmt.Errorf("%s exists; name another file or remove it", path))
	}
	if err != nil {
		return exit(exitFile, fmt.Errorf("write an experiment: %w", err))
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return exit(exitFile, fmt.Errorf("write %s: %w", path, err))
	}
	fmt.Fprintf(s.Out, "wrote %s\n", path)
	fmt.Fprintf(s.Err, "next: wirelab plan %s, then wirelab run %s\n", path, path)
	return nil
}
