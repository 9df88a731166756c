package instrument

import (
	"context"
	"time"

	"wirelab/emul/attr"
	"wirelab/results"
)

// Backlog is the instrument "backlog": series and totals of every link. Its
// totals do not depend on being enabled: a disabled one only drops the series.
type Backlog struct {
	Settings
	Interval          time.Duration `hcl:"interval,optional" default:"20ms" doc:"Time between two readings of the links' counters; stretched where that would cost more than 5 % of a core."`
	MaxDepartureError time.Duration `hcl:"max_departure_error,optional" default:"1ms" doc:"A run whose packets left an emulated link later than this after they were due (99th percentile) is invalid; \"0s\" does not judge."`
}

var _ Instrument = (*Backlog)(nil)

func newBacklog() Instrument {
	return &Backlog{Settings: Settings{Enabled: true}, Interval: 20 * time.Millisecond, MaxDepartureError: time.Millisecond}
}

// Validate implements [Instrument].
func (b *Backlog) Validate() []attr.Problem { return checkInterval(b.Interval, false) }

// Needs implements [Instrument].
func (b *Backlog) Needs() (nodes, links []string) { return nil, nil }

// Metrics implements [Instrument]. The links' own are [LinkMetrics].
func (b *Backlog) Metrics() []results.MetricDef {
	defs := []results.MetricDef{
		{Name: "forwarder_cpu_ratio", Unit: "1", Definition: "CPU time of the forwarding process over the window, in cores.", Source: "software backend"},
		{Name: "forwarder_wakeups_hz", Unit: "1/s", Definition: "How often the forwarding process went to sleep, per second.", Source: "software backend"},
	}
	if b.Enabled {
		defs = append(defs, results.MetricDef{Name: "interval_mean_s", Unit: "s", Definition: "Mean time between two readings of the links' counters.", Source: "wirelab"})
	}
	return defs
}

// Start implements [Instrument].
func (b *Backlog) Start(ctx context.Context, t Target) (Running, error) {
	o := LinkMeterOptions{Interval: b.Interval, MaxDepartureError: b.MaxDepartureError}
	if !b.Enabled {
		o.Interval = 0
	}
	m, err := StartLinkMeter(ctx, t, o)
	if err != nil {
		return nil, err
	}
	return m, nil
}
