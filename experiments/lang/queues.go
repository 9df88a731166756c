package lang

import (
	"fmt"
	"time"

	"wirelab/emul"
	"wirelab/emul/unit"
	"wirelab/testbed"
)

// defaultQueues gives every rate without a queue one bandwidth-delay product
// of its link (at least two full packets), and notes the formula.
func (g *graphLoader) defaultQueues() {
	for i := range g.t.Links {
		k := &g.t.Links[i]
		rtt := k.Forward.Delay + k.Reverse.Delay
		g.defaultQueue(k, &k.Forward, "forward", rtt)
		g.defaultQueue(k, &k.Reverse, "reverse", rtt)
	}
}

func (g *graphLoader) defaultQueue(k *testbed.Link, i *emul.Impairment, direction string, rtt time.Duration) {
	if i.Rate == 0 || !i.Queue.IsZero() {
		return
	}
	frame := wireSize(k)
	size := unit.BDP(i.Rate, rtt, 1, frame)
	i.Queue = unit.Limit{Bytes: size}
	formula := fmt.Sprintf("default queue = 1 BDP = %s x %s / 8 = %d B", i.Rate, rtt, int64(size))
	if size == unit.Size(2*frame) {
		formula = fmt.Sprintf("default queue = 2 full packets = %d B, because 1 BDP = %s x %s / 8 is less; give queue or delay if that is too short for bursts", int64(size), i.Rate, rtt)
	}
	g.notes.add(formula, g.t.Name+"."+k.Name+" "+direction)
}

// wireSize is the Ethernet frame of a full packet on a link, in bytes.
func wireSize(k *testbed.Link) int {
	if k.MTU > 0 {
		return k.MTU + 14
	}
	return wireMTU
}
