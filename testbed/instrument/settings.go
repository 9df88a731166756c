package instrument

import (
	"time"

	"wirelab/emul/attr"
)

// Settings is the attribute that all instruments share; kinds embed it.
type Settings struct {
	Enabled bool `hcl:"enabled,optional" default:"true" doc:"False switches the instrument off."`
}

// nothing is an instrument that was started but measures nothing: it is
// disabled, or cannot work here, which its notes then say.
type nothing struct{ notes []string }

// Stop implements [Running].
func (n nothing) Stop() (Result, error) { return Result{Notes: n.notes}, nil }

var _ Running = nothing{}

// checkInterval finds an interval that no clock of ours can keep. Zero is
// allowed where zeroOK says so.
func checkInterval(d time.Duration, zeroOK bool) []attr.Problem {
	if d == 0 && zeroOK {
		return nil
	}
	if d < time.Millisecond || d > time.Minute {
		return []attr.Problem{attr.At("interval", "interval out of range", `%s is not between "1ms" and "1m".`, d)}
	}
	return nil
}

// checkShare finds a ratio outside [0, 1].
func checkShare(path string, v float64) []attr.Problem {
	if v < 0 || v > 1 {
		return []attr.Problem{attr.At(path, "ratio out of range", `%g is not between "0%%" and "100%%".`, v)}
	}
	return nil
}
