package instrument

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirelab/emul/attr"
	"wirelab/emul/unit"
	"wirelab/results"
)

// Capture is the instrument "capture": the packets that pass the devices of
// nodes, in a pcapng file of the run's directory. It covers the whole load.
type Capture struct {
	Settings
	On      string    `hcl:"on,optional" doc:"Node, all of whose devices are captured."`
	Link    string    `hcl:"link,optional" doc:"Link, as \"net.bottleneck\", captured at the nodes' devices at both its ends: a packet that one end shows as outbound and the other as inbound has crossed."`
	Snaplen unit.Size `hcl:"snaplen,optional" default:"128B" doc:"Bytes kept of a packet; the default holds all headers of TCP. The length of the whole packet is kept always."`
	Ring    unit.Size `hcl:"ring,optional" default:"8MiB" doc:"Kernel memory for packets that are not written yet, per device; what does not fit is counted as dropped from the capture."`
	MaxSize unit.Size `hcl:"max_size,optional" default:"0B" doc:"The capture stops when its file has this size; \"0B\" does not stop it."`
}

var _ Instrument = (*Capture)(nil)

func newCapture() Instrument {
	return &Capture{Settings: Settings{Enabled: true}, Snaplen: 128, Ring: 8 << 20}
}

// The bounds of a capture's attributes, in bytes.
const (
	captureBlock   = 256 << 10 // of the ring: handed over when full, or after a while
	captureMinLen  = 14
	captureMaxLen  = 128 << 10
	captureMinRing = 2 * captureBlock
	captureMaxRing = 1 << 30
)

// Validate implements [Instrument].
func (c *Capture) Validate() []attr.Problem {
	var problems []attr.Problem
	if c.Enabled && c.On == "" && c.Link == "" {
		problems = append(problems, attr.At("", "a capture of nothing", `Say where to capture: on = "left1" for a node, or link = "net.bottleneck".`))
	}
	if c.Snaplen < captureMinLen || c.Snaplen > captureMaxLen {
		problems = append(problems, attr.At("snaplen", "snaplen out of range", "%s is not between %dB and %s.", c.Snaplen, captureMinLen, unit.Size(captureMaxLen)))
	}
	if c.Ring < captureMinRing || c.Ring > captureMaxRing {
		problems = append(problems, attr.At("ring", "ring out of range", "%s is not between %s and %s.", c.Ring, unit.Size(captureMinRing), unit.Size(captureMaxRing)))
	}
	return problems
}

// Needs implements [Instrument].
func (c *Capture) Needs() (nodes, links []string) {
	if !c.Enabled {
		return nil, nil
	}
	if c.On != "" {
		nodes = []string{c.On}
	}
	if c.Link != "" {
		links = []string{c.Link}
	}
	return nodes, links
}

// Metrics implements [Instrument].
func (c *Capture) Metrics() []results.MetricDef {
	if !c.Enabled {
		return nil
	}
	return []results.MetricDef{
		{Name: "packets_captured_count", Unit: "packets", Definition: "Packets written to the file, warm-up included; a GSO super-packet is one.", Source: "PACKET_MMAP, packet(7)"},
		{Name: "packets_dropped_count", Unit: "packets", Definition: "Packets that the capture itself lost, because they came faster than they were written.", Source: "PACKET_STATISTICS, packet(7)"},
		{Name: "file_size_bytes", Unit: "bytes", Definition: "Size of the capture file.", Source: "wirelab"},
	}
}

// devices are those to capture, each once, in a fixed order; with the link
// that each belongs to.
func (c *Capture) devices(t *Target) ([]captureDevice, error) {
	var out []captureDevice
	seen := map[Device]bool{}
	add := func(link string, d Device) {
		if !seen[d] {
			seen[d] = true
			out = append(out, captureDevice{d, link})
		}
	}
	known := slices.Sorted(maps.Keys(t.Devices))
	if c.On != "" {
		for _, link := range known {
			for _, d := range t.Devices[link] {
				if d.Node == c.On {
					add(link, d)
				}
			}
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("capture on %s: the node has no device", c.On)
		}
	}
	if c.Link != "" {
		ends, ok := t.Devices[c.Link]
		if !ok {
			return nil, fmt.Errorf("capture on %s: there is no such link; known are %s", c.Link, strings.Join(known, ", "))
		}
		add(c.Link, ends[0])
		add(c.Link, ends[1])
	}
	return out, nil
}

// captureDevice is one device to capture, and its link.
type captureDevice struct {
	Device
	link string
}

// Start implements [Instrument].
func (c *Capture) Start(ctx context.Context, t Target) (Running, error) {
	if !c.Enabled {
		return nothing{}, nil
	}
	devices, err := c.devices(&t)
	if err != nil {
		return nil, err
	}
	return startCapture(ctx, *c, t, devices)
}
