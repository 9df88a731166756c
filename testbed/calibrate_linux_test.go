package testbed

import (
	"context"
	"strings"
	"testing"
	"time"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/emul/unit"
	"wirelab/results"
)

// everyKind has links between each two kinds of node.
func everyKind() Topology {
	return Topology{Name: "kinds", Nodes: append(append(nodes(KindHost, "a", "b"), nodes(KindRouter, "r")...), nodes(KindBridge, "s")...),
		Links: []Link{{Name: "ar", A: "a", B: "r"}, {Name: "rs", A: "r", B: "s"}, {Name: "sb", A: "s", B: "b"}}}
}

// calibrate measures until all links are as asked. A busy host needs several
// goes; a link that is wrong never passes.
func calibrate(t *testing.T, tb *Testbed) map[string]results.Calibration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		got, err := tb.Calibrate(ctx, CalibrateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		bad := ""
		for name, c := range got {
			if !c.OK {
				bad = name + ": " + c.Reason
			}
		}
		if bad == "" {
			return got
		}
		t.Log(bad)
	}
}

// Links between all kinds of node, slow and fast, show what they were asked;
// losses have not begun.
func TestCalibrate(t *testing.T) {
	for _, i := range []emul.Impairment{
		{Delay: 10 * time.Millisecond},
		{Rate: 100e6, Delay: 5 * time.Millisecond, Queue: unit.Limit{Packets: 100}},
		{Rate: 100e3, Delay: time.Millisecond, Queue: unit.Limit{Packets: 20}},
		{Rate: 1e6, Delay: 20 * time.Millisecond, Queue: unit.Limit{Packets: 2}},
		{Rate: 1e9, Delay: 5 * time.Millisecond, Queue: unit.Limit{Packets: 1000}},
		{Rate: 50e6, Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond, Queue: unit.Limit{Packets: 100}},
		{Rate: 50e6, Delay: 5 * time.Millisecond, Queue: unit.Limit{Packets: 2}, Loss: 0.5},
	} {
		t.Run(i.String(), func(t *testing.T) {
			got := calibrate(t, bringUp(t, impaired(everyKind(), i)))
			for _, name := range []string{"ar", "rs", "sb"} {
				c, ok := got[name]
				if !ok || c.RTTAskedS != 2*i.Delay.Seconds() || c.ForwardAskedBPS != float64(i.Rate) || c.ReverseAskedBPS != float64(i.Rate) || c.DurationS <= 0 {
					t.Errorf("%s: %+v", name, c)
				}
			}
		})
	}
}

// lying enforces something else than it was asked.
type lying struct {
	emul.Backend
	lie func(*emul.Cable)
}

func (l lying) Join(ctx context.Context, cables []emul.Cable) (emul.Session, error) {
	for i := range cables {
		l.lie(&cables[i])
	}
	return l.Backend.Join(ctx, cables)
}

// A backend that reports success and does nothing, or too little, is found out.
func TestCalibrateFindsOut(t *testing.T) {
	needRoot(t)
	for name, c := range map[string]struct {
		lie  func(*emul.Cable)
		want string
	}{
		"no delay":     {func(c *emul.Cable) { c.Forward.Delay, c.Reverse.Delay = 0, 0 }, "asked RTT 100ms"},
		"half a delay": {func(c *emul.Cable) { c.Reverse.Delay = 0 }, "asked RTT 100ms"},
		"no rate":      {func(c *emul.Cable) { c.Forward.Rate, c.Forward.Queue = 0, unit.Limit{} }, "asked forward rate 20 Mbit/s"},
		"lower rate":   {func(c *emul.Cable) { c.Reverse.Rate = 15e6 }, "asked reverse rate 20 Mbit/s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topo := impaired(chainOf(2), emul.Impairment{Delay: 50 * time.Millisecond, Rate: 20e6, Queue: unit.Limit{Packets: 100}})
			opt := testOptions(t)
			opt.Backend = lying{software.New(software.Options{}), c.lie}
			tb, err := Up(t.Context(), topo, opt)
			if err != nil {
				t.Fatal(err)
			}
			defer tb.Close()
			// A busy host may find other reasons beside, or instead.
			for start := time.Now(); ; {
				got, err := tb.Calibrate(t.Context(), CalibrateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				r := got["l1"]
				if strings.Contains(r.Reason, c.want) {
					return
				}
				if r.OK || time.Since(start) > time.Minute {
					t.Fatalf("calibration %+v, want a reason with %q", r, c.want)
				}
			}
		})
	}
}

func TestCalibrateEndsWithItsContext(t *testing.T) {
	tb := bringUp(t, impaired(chainOf(2), emul.Impairment{Delay: 200 * time.Millisecond}))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := tb.Calibrate(ctx, CalibrateOptions{}); err == nil {
		t.Error("no error from a cancelled calibration")
	}
}
