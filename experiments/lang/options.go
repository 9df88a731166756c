package lang

import (
	"io/fs"
	"time"

	"wirelab/emul"
	"wirelab/testbed/instrument"
	"wirelab/testbed/topo"
	"wirelab/workloads"
	"wirelab/workloads/kinds"
)

// DefaultMaxRuns is the number of runs above which an experiment must be
// confirmed (Options.Yes).
const DefaultMaxRuns = 10000

// Options change what a file says and tell what it may refer to. The zero value
// loads the file as it is, on an unknown host.
type Options struct {
	// Smoke applies the file's smoke block.
	Smoke bool
	// The settings below beat the smoke block, which beats the file. Empty, nil
	// and zero leave what the file says.
	Substrate string
	Variables map[string]string // "flows": "16"
	// VarFiles are files of "name = value" lines. They lie beside the user, so
	// they are of the operating system also where FS is set; Variables beat them.
	VarFiles    []string
	Duration    *time.Duration
	Warmup      *time.Duration
	Repetitions int
	Seed        *uint64
	// Only keeps the points whose id is this, or that have all the sweep values
	// it names ("buffer=1" of a sweep over buffer and cca).
	Only string
	// Yes allows more than MaxRuns runs; MaxRuns 0 means DefaultMaxRuns.
	Yes     bool
	MaxRuns uint64
	Host    Host
	// FS is where paths are opened; nil is the operating system's.
	FS fs.FS
	// Backends are asked whether they support each impairment. The first that
	// does gets a link with emulation = "auto". None: nothing is asked.
	Backends []emul.Backend
	// Kinds is what the file may use; the zero value is everything built in.
	Kinds Kinds
}

// Host holds the facts of this machine that a file may refer to as host.*.
type Host struct {
	Cores       int      // logical processors
	Kernel      string   // release, for example "6.1.0-18-amd64"
	NICs        []string // physical network interfaces
	OS          string   // as GOOS
	Arch        string   // as GOARCH
	MemoryBytes int64
}

// Kinds are the registered kinds of blocks.
type Kinds struct {
	Topologies  []topo.Kind
	Workloads   []workloads.Kind
	Instruments []instrument.Kind
	// Defaults are the instruments that run without being named.
	Defaults []instrument.Default
}

// BuiltIn returns every kind that this build knows.
func BuiltIn() Kinds {
	return Kinds{
		Topologies: topo.Kinds(), Workloads: kinds.Kinds(),
		Instruments: instrument.Kinds(), Defaults: instrument.Defaults(),
	}
}

// orBuiltIn replaces the zero value by everything built in.
func (k Kinds) orBuiltIn() Kinds {
	if k.Topologies == nil && k.Workloads == nil && k.Instruments == nil {
		return BuiltIn()
	}
	return k
}
