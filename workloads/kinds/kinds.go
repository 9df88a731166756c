// Package kinds lists the workload kinds that this build knows.
//
// There is no registration by import: the language and the actor verb are
// handed this list. A new kind is one line here.
package kinds

import (
	"wirelab/workloads"
	"wirelab/workloads/command"
	"wirelab/workloads/probe"
	"wirelab/workloads/tcp"
)

// Kinds returns every workload kind, in the order of the reference.
func Kinds() []workloads.Kind {
	return []workloads.Kind{
		tcp.Kind(),
		probe.PingKind(),
		command.Kind(),
	}
}
