// Package probe measures a path with small packets beside or without load.
//
// The kind "ping" sends ICMP echo requests at a regular interval and takes the
// round-trip time of each from the sender's clock and the kernel's receive
// stamp; the target's kernel answers by itself. The names of loss, delay
// variation and reordering follow the IPPM metrics (RFC 2681, 7680, 5481,
// 4737), applied to the round trip.
package probe

import (
	"time"

	"wirelab/emul/attr"
	"wirelab/emul/unit"
	"wirelab/results"
	"wirelab/workloads"
)

// Ping is the configuration of a ping block.
type Ping struct {
	workloads.Placement
	Interval time.Duration `hcl:"interval,optional" default:"100ms" doc:"Time between two requests."`
	Size     unit.Size     `hcl:"size,optional" default:"56B" doc:"Payload of a request; the IP packet is 28 bytes longer (IPv6: 48)."`
	Count    int           `hcl:"count,optional" doc:"Number of requests; default: until the end of the load."`
	Wait     time.Duration `hcl:"wait,optional" default:"1s" doc:"A reply later than this counts as lost; the last ones are waited for after the end of the load."`
	IP       string        `hcl:"ip,optional" default:"4" doc:"Version of IP: \"4\" or \"6\"."`
}

var _ workloads.Workload = (*Ping)(nil)

const rolePinger = "pinger"

// PingKind describes the workload kind "ping".
func PingKind() workloads.Kind {
	return workloads.Kind{
		Name: "ping",
		Doc:  "ICMP echo from one node to another: round-trip times, loss, delay variation and reordering, of an idle path or beside other workloads.",
		New: func() workloads.Workload {
			return &Ping{Interval: 100 * time.Millisecond, Size: 56, Wait: time.Second, IP: "4"}
		},
		Actors: map[string]func() workloads.Actor{rolePinger: func() workloads.Actor { return &pinger{} }},
		Series: []results.MetricDef{
			{Name: "rtt_s", Unit: "s", Source: sourceRTT, Definition: "Round-trip time of each answered request, at the time it was sent."},
		},
	}
}

// version returns 4 or 6.
func (p *Ping) version() int {
	if p.IP == "6" {
		return 6
	}
	return 4
}

// Roles returns the one role: the target's kernel answers by itself.
func (p *Ping) Roles() []workloads.Role {
	return []workloads.Role{{Name: rolePinger, Node: p.From, Config: p}}
}

// maxPayload is what fits an IPv4 packet.
const maxPayload = 65507

// Validate checks the values of the attributes.
func (p *Ping) Validate() []attr.Problem {
	var out []attr.Problem
	bad := func(path, summary, format string, args ...any) {
		out = append(out, attr.At(path, summary, format, args...))
	}
	if p.From == "" || p.To == "" {
		bad("", "a ping needs two nodes", `name the asking node in "from" and the answering one in "to"`)
	}
	if p.On != "" {
		bad("on", "a ping has two ends", `use "from" and "to"`)
	}
	if p.Interval < 100*time.Microsecond {
		bad("interval", "requests too frequent", "at least 100us; for more packets a second use a load")
	}
	if p.Size < tagSize || p.Size > maxPayload {
		bad("size", "payload out of range", "%d bytes are not between %d and %d", int64(p.Size), tagSize, maxPayload)
	}
	if p.Count < 0 {
		bad("count", "negative count", "leave it out to ask until the end of the load")
	}
	if p.Wait < time.Millisecond || p.Wait > 4*time.Second {
		bad("wait", "waiting time out of range", "between 1ms and 4s: an actor gets 5 s to say its summary")
	}
	if p.IP != "4" && p.IP != "6" {
		bad("ip", "unknown version of IP", `write "4" or "6"`)
	}
	return out
}

const sourceRTT = "RFC 2681; kernel receive stamp (SO_TIMESTAMPNS) - clock before send"

// Metrics lists what a ping gives.
func (p *Ping) Metrics() []results.MetricDef {
	return []results.MetricDef{
		{Name: "rtt_min_s", Unit: "s", Source: sourceRTT, Definition: "Smallest round-trip time of the requests sent in the measurement window."},
		{Name: "rtt_mean_s", Unit: "s", Source: sourceRTT, Definition: "Mean round-trip time."},
		{Name: "rtt_p50_s", Unit: "s", Source: sourceRTT, Definition: "Median round-trip time."},
		{Name: "rtt_p90_s", Unit: "s", Source: sourceRTT, Definition: "90th percentile of the round-trip time."},
		{Name: "rtt_p95_s", Unit: "s", Source: sourceRTT, Definition: "95th percentile of the round-trip time."},
		{Name: "rtt_p99_s", Unit: "s", Source: sourceRTT, Definition: "99th percentile of the round-trip time."},
		{Name: "rtt_max_s", Unit: "s", Source: sourceRTT, Definition: "Largest round-trip time."},
		{Name: "delay_variation_p50_s", Unit: "s", Source: "RFC 5481 section 4.2 (PDV)", Definition: "Median round-trip time minus the smallest."},
		{Name: "delay_variation_p99_s", Unit: "s", Source: "RFC 5481 section 4.2 (PDV)", Definition: "99th percentile of the round-trip time minus the smallest."},
		{Name: "loss_ratio", Unit: "1", Source: "RFC 6673 (round-trip loss)", Definition: "Share of the requests sent in the measurement window without a reply within wait."},
		{Name: "sent_count", Unit: "packets", Source: "sender", Definition: "Requests sent in the measurement window."},
		{Name: "received_count", Unit: "packets", Source: "sender", Definition: "Of those, requests with a reply within wait."},
		{Name: "late_count", Unit: "packets", Source: "sender", Definition: "Of those, requests whose reply came after wait: they count as lost."},
		{Name: "duplicates_count", Unit: "packets", Source: "RFC 5560", Definition: "Replies to requests that had been answered before."},
		{Name: "reordered_count", Unit: "packets", Source: "RFC 4737 section 3", Definition: "Replies within wait that came after the reply to a later request."},
		{Name: "send_errors_count", Unit: "packets", Source: "sender", Definition: "Requests that the kernel did not take (a full device queue); they do not count as sent."},
		{Name: "send_lateness_p99_s", Unit: "s", Source: "sender", Definition: "99th percentile of how much later than planned a request was sent: the generator's own error."},
	}
}

// Reduce passes on what the pinger found.
func (p *Ping) Reduce(in workloads.Reduction) workloads.Outcome {
	for _, r := range in.Records {
		if r.Role != rolePinger || r.Flow != -1 || r.Name != "" {
			continue
		}
		out := workloads.Outcome{Values: map[string]float64{}, Status: results.StatusOK}
		for _, d := range p.Metrics() {
			if v, ok := r.Values[d.Name]; ok {
				out.Values[d.Name] = v
			}
		}
		if out.Values["sent_count"] == 0 {
			return workloads.Outcome{Status: results.StatusNoData, Notes: []string{"no request was sent in the measurement window"}}
		}
		if late := out.Values["send_lateness_p99_s"]; late > p.Interval.Seconds()/2 && late > 0.001 {
			out.Notes = append(out.Notes, "generator fell behind: 1 % of the requests were sent more than half an interval late")
		}
		return out
	}
	return workloads.Outcome{Status: results.StatusNoData, Notes: []string{"the pinger gave no summary"}}
}
