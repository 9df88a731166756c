package main

import (
	"github.com/spf13/cobra"

	"wirelab/emul/software"
	"wirelab/workloads"
	"wirelab/workloads/kinds"
)

// newActor is the hidden verb that plays one role of a workload.
func newActor(Streams) *cobra.Command {
	return &cobra.Command{
		Use:    "actor KIND ROLE",
		Short:  "Play one role of a workload, speaking the actor protocol",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if status := workloads.RunActor(cmd.Context(), kinds.Kinds(), args[0], args[1]); status != 0 {
				return exit(status, nil)
			}
			return nil
		},
	}
}

// newForward is the hidden verb that forwards packets for the software backend.
func newForward(Streams) *cobra.Command {
	return &cobra.Command{
		Use:    "forward",
		Short:  "Forward packets between the ports handed over, as their impairments say",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return software.ForwardMain(cmd.Context())
		},
	}
}
