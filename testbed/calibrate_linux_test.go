package testbed

import (
	"fmt"
	"testing"
	"time"

	"wirelab/emul"
	"wirelab/emul/unit"
)

// Links of every kind of node and many rates show what they were asked.
func TestCalibrate(t *testing.T) {
	topo := Topology{Name: "cal", Nodes: append(append(nodes(KindHost, "a", "b"), nodes(KindRouter, "r")...), nodes(KindBridge, "s")...),
		Links: []Link{{Name: "ar", A: "a", B: "r"}, {Name: "rs", A: "r", B: "s"}, {Name: "sb", A: "s", B: "b"}}}
	for _, c := range []emul.Impairment{
		{Delay: 10 * time.Millisecond},
		{Rate: 100e6, Delay: 5 * time.Millisecond, Queue: unit.Limit{Packets: 100}},
		{Rate: 100e3, Delay: time.Millisecond, Queue: unit.Limit{Packets: 20}},
		{Rate: 10e3, Queue: unit.Limit{Packets: 20}},
		{Rate: 1e6, Delay: 20 * time.Millisecond, Queue: unit.Limit{Packets: 2}},
		{Rate: 1e9, Delay: 5 * time.Millisecond, Queue: unit.Limit{Packets: 1000}},
		{Rate: 4e9, Delay: 5 * time.Millisecond, Queue: unit.Limit{Packets: 4000}},
		{Rate: 50e6, Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Queue: unit.Limit{Packets: 100}},
		{Rate: 50e6, Delay: 5 * time.Millisecond, Queue: unit.Limit{Packets: 2}, Loss: 0.5},
	} {
		t.Run(c.String(), func(t *testing.T) {
			tb := bringUp(t, impaired(topo, c))
			got, err := tb.Calibrate(t.Context(), CalibrateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for name, r := range got {
				fmt.Printf("%s: %+v\n", name, r)
			}
		})
	}
}
