package software

import (
	"fmt"
	"math"
	"slices"
	"time"

	"wirelab/emul"
	"wirelab/emul/unit"
)

// The bounds of what the model represents.
const (
	maxRate  = 100e9 // bit/s; a packet then takes 121 ns, still many clock ticks
	maxDelay = time.Hour
)

var (
	knownAQM           = []string{"", "droptail"}
	knownDistributions = []string{"", "uniform", "normal"}
)

// Supports implements emul.Backend.
func (b *Backend) Supports(i emul.Impairment) error {
	no := func(field, remedy, format string, args ...any) error {
		return &emul.UnsupportedError{Backend: Name, Field: field, Reason: fmt.Sprintf(format, args...), Remedy: remedy}
	}
	switch {
	case i.Rate < 0 || i.Rate > maxRate:
		return no("rate", `write a rate from "1bit" to "100gbit", or none for an unlimited link`,
			"a rate of %d bit/s is outside what it can time", int64(i.Rate))
	case i.Queue.Bytes < 0 || i.Queue.Packets < 0 || i.Queue.Time < 0:
		return no("queue", `write a limit such as "100pkt", "64KiB" or "50ms"`, "a queue cannot be negative")
	case limits(i.Queue) > 1:
		return no("queue", "give one of packets, bytes and time", "a queue has one limit, not %d", limits(i.Queue))
	case !slices.Contains(knownAQM, i.AQM):
		return no("aqm", `write aqm = "droptail", or choose a backend that has it`,
			"queue discipline %q is not known to it", i.AQM)
	case i.Delay < 0 || i.Delay > maxDelay:
		return no("delay", `write a delay from "0ms" to "1h"`, "a delay of %v is out of range", i.Delay)
	case i.Jitter < 0 || i.Jitter > maxDelay:
		return no("jitter", `write a jitter from "0ms" to "1h"`, "a jitter of %v is out of range", i.Jitter)
	case !slices.Contains(knownDistributions, i.Distribution):
		return no("distribution", `write "uniform" or "normal"`, "distribution %q is not known to it", i.Distribution)
	case math.IsNaN(float64(i.Loss)) || i.Loss < 0 || i.Loss > 1:
		return no("loss", `write a ratio from "0%" to "100%"`, "a loss of %v is no probability", float64(i.Loss))
	}
	return nil
}

// limits counts the fields set.
func limits(l unit.Limit) int {
	n := 0
	for _, set := range []bool{l.Bytes != 0, l.Packets != 0, l.Time != 0} {
		if set {
			n++
		}
	}
	return n
}
