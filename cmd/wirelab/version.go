package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release, set by the linker when one is built from a tag.
var version = "0.1.0-dev"

// versionText returns the release and, where the build knows it, the commit.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return version + "+" + s.Value[:12]
		}
	}
	return version
}

// moduleSums returns "path@version" to sum of every module built in.
func moduleSums() map[string]string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	sums := make(map[string]string, len(info.Deps))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		sums[m.Path+"@"+m.Version] = m.Sum
	}
	return sums
}

func newVersion(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintln(s.Out, "wirelab", versionText())
			return nil
		},
	}
}
