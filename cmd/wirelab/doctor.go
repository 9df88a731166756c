package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"wirelab/testbed"
)

func newDoctor(s Streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out by trying what this host can do, and say what to do about the rest",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := testbed.Doctor(cmd.Context())
			if asJSON {
				if err := writeJSON(s.Out, findings); err != nil {
					return err
				}
			} else {
				printFindings(s, findings)
			}
			for _, f := range findings {
				if f.Needed && !f.OK {
					return exit(exitHost, nil)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// printFindings lists what works and what does not; a remedy follows its
// finding.
func printFindings(s Streams, findings []testbed.Finding) {
	missing := 0
	for _, f := range findings {
		mark := "ok     "
		switch {
		case f.OK:
		case f.Needed:
			mark = "MISSING"
			missing++
		default:
			mark = "absent "
		}
		fmt.Fprintf(s.Out, "%s  %-28s %s\n", mark, f.Name, f.Detail)
		if !f.OK && f.Remedy != "" {
			fmt.Fprintf(s.Out, "         %-28s -> %s\n", "", f.Remedy)
		}
	}
	if missing == 0 {
		fmt.Fprintln(s.Out, "\nThis host can run experiments on network namespaces; what is absent is not needed for that.")
		return
	}
	fmt.Fprintf(s.Out, "\n%s missing that runs on network namespaces need.\n", plural(missing, "thing"))
}
