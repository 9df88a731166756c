package emul

import (
	"testing"
	"time"

	"wirelab/emul/unit"
)

func TestImpairmentText(t *testing.T) {
	for want, i := range map[string]Impairment{
		"none":                                {},
		"delay 20ms":                          {Delay: 20 * time.Millisecond},
		"loss 1%":                             {Loss: 0.01},
		"10mbit":                              {Rate: 10e6},
		"delay 0s ± 1ms uniform, may reorder": {Jitter: time.Millisecond, JitterReorders: true},
		"100mbit, queue 100pkt droptail, loss 0.1%, delay 10ms ± 2ms normal": {Rate: 100e6, Queue: unit.Limit{Packets: 100}, Loss: 0.001, Delay: 10 * time.Millisecond, Jitter: 2 * time.Millisecond, Distribution: "normal"},
	} {
		if got := i.String(); got != want {
			t.Errorf("%+v is told as %q, want %q", i, got, want)
		}
	}
}
