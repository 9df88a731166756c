package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirelab/emul"
	"wirelab/emul/unit"
	"wirelab/results"
	"wirelab/testbed"
	"wirelab/testbed/instrument"
)

func newExplain(s Streams) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "explain FILE LINK | explain DIR",
		Short: "Show the numbers derived for a link, or what bound each run",
		Long: `With a file and a link: what the link's attributes mean in numbers, with the
formulas. With a result directory: what bound the throughput of each workload in
each run: the rate, the receive window, the send buffer, or a busy core.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			src, err := resolve(args[0])
			if err != nil {
				return exit(exitFile, err)
			}
			if src.resume != "" {
				return explainRuns(s, args[0])
			}
			if len(args) != 2 {
				return exit(exitFile, errors.New("name a link of the experiment: wirelab explain FILE LINK"))
			}
			f.seedSet = cmd.Flags().Changed("seed")
			return explainLink(s, src, &f, args[1])
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// explainLink prints the derived numbers of a link in every point where they
// differ.
func explainLink(s Streams, src source, f *loadFlags, name string) error {
	l, err := load(s, src, f, instrument.HostFacts(), backends())
	if err != nil {
		return err
	}
	name = strings.TrimPrefix(name, "net.")
	var last string
	var known []string
	for _, p := range l.exp.Points {
		t := p.Repetitions[0].Topology
		if t == nil {
			return exit(exitFile, fmt.Errorf("%s has no topology", src.arg))
		}
		known = known[:0]
		for _, link := range t.Links {
			known = append(known, link.Name)
			if link.Name != name {
				continue
			}
			text := linkText(link)
			if text != last {
				fmt.Fprintf(s.Out, "%s, link %s (%s - %s), backend %s: %s\n%s", p.ID, link.Name, link.A, link.B, link.Backend, link.Why, text)
			}
			last = text
		}
	}
	if last == "" {
		return exit(exitFile, fmt.Errorf("no link %q; there are %s", name, strings.Join(known, ", ")))
	}
	return nil
}

func linkText(l testbed.Link) string {
	mtu := l.MTU
	if mtu == 0 {
		mtu = 1500
	}
	var b strings.Builder
	rtt := l.Forward.Delay + l.Reverse.Delay
	for _, d := range []struct {
		name string
		imp  emul.Impairment
	}{{"forward", l.Forward}, {"reverse", l.Reverse}} {
		fmt.Fprintf(&b, "  %s: %s\n", d.name, d.imp)
		explainDirection(&b, d.imp, rtt, mtu)
	}
	fmt.Fprintf(&b, "  RTT added = %s + %s = %s\n", l.Forward.Delay, l.Reverse.Delay, rtt)
	return b.String()
}

// explainDirection prints the formulas of one direction.
func explainDirection(w io.Writer, i emul.Impairment, rtt time.Duration, mtu int) {
	if i.Rate == 0 {
		return
	}
	wire := mtu + 14
	rate := float64(i.Rate)
	fmt.Fprintf(w, "    one full packet takes %d B x 8 / %s = %s\n", wire, i.Rate, seconds(float64(wire)*8/rate))
	fmt.Fprintf(w, "    packets per second at the rate: %s / (8 x %d B) = %.0f\n", i.Rate, wire, rate/8/float64(wire))
	fmt.Fprintf(w, "    TCP goodput at most %s x %d/%d = %s (12 B of TCP options)\n", i.Rate, mtu-52, wire, unit.Rate(rate*float64(mtu-52)/float64(wire)))
	fmt.Fprintf(w, "    BDP = %s x %s / 8 = %.0f B\n", i.Rate, rtt, rate*rtt.Seconds()/8)
	if size, ok := i.Queue.BytesAt(i.Rate, wire); ok {
		fmt.Fprintf(w, "    queue %s = %d B, full after %d B x 8 / %s = %s of queueing delay\n", i.Queue, size, size, i.Rate, seconds(float64(size)*8/rate))
		if bdp := rate * rtt.Seconds() / 8; bdp > 0 {
			fmt.Fprintf(w, "    queue / BDP = %.2f\n", float64(size)/bdp)
		}
	}
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Microsecond / 10).String()
}

// explainRuns tells what bound each workload of each run.
func explainRuns(s Streams, path string) error {
	j, err := stored(s, path, runFlags{})
	if err != nil {
		return err
	}
	defer j.dir.Close()
	for _, r := range j.runs {
		fmt.Fprintf(s.Out, "run %d  %s repetition %d  %s\n", r.Index, r.Point.ID, r.Repetition, validity(r))
		for _, m := range j.manifest.Metrics {
			if text := bound(r, m.Name); text != "" {
				fmt.Fprintf(s.Out, "  %s: %s\n", m.Name, text)
			}
		}
		for _, a := range r.Actors {
			if a.MaxCoreLoad > 0.95 {
				fmt.Fprintf(s.Out, "  %s kept a core %.0f %% busy: it may be what was measured\n", a.Name, 100*a.MaxCoreLoad)
			}
		}
		for _, n := range r.Notes {
			fmt.Fprintf(s.Out, "  note: %s\n", n)
		}
	}
	return nil
}

func validity(r *results.Run) string {
	switch {
	case !r.HasMetrics():
		return string(r.Status) + ": " + firstLine(r.Error)
	case !r.Valid:
		return "invalid: " + strings.Join(r.Reasons, "; ")
	}
	return "valid"
}

// bound names what a TCP workload's throughput was limited by, from the shares
// of time that tcp_info reports (busy, rwnd_limited, sndbuf_limited).
func bound(r *results.Run, name string) string {
	get := func(metric string) (float64, bool) {
		v, ok := r.Lookup(name + "." + metric)
		return v.Value, ok
	}
	if u, ok := get("utilization_ratio"); ok {
		return fmt.Sprintf("utilization %.1f %%", 100*u)
	}
	goodput, ok := get("goodput_bps")
	if !ok {
		return ""
	}
	parts := []string{results.FormatValue(goodput, "bit/s")}
	if rtt, ok := get("rtt_mean_s"); ok {
		parts = append(parts, fmt.Sprintf("rate x RTT = %.0f B in flight", goodput*rtt/8))
	}
	rwnd, hasRwnd := get("rwnd_limited_ratio")
	sndbuf, hasSndbuf := get("sndbuf_limited_ratio")
	busy, hasBusy := get("busy_ratio")
	switch {
	case hasRwnd && rwnd > 0.5:
		parts = append(parts, fmt.Sprintf("bound by the receive window %.0f %% of the time (raise net.ipv4.tcp_rmem)", 100*rwnd))
	case hasSndbuf && sndbuf > 0.5:
		parts = append(parts, fmt.Sprintf("bound by the send buffer %.0f %% of the time (raise net.ipv4.tcp_wmem)", 100*sndbuf))
	case hasBusy && busy < 0.5:
		parts = append(parts, fmt.Sprintf("the application had nothing to send %.0f %% of the time", 100*(1-busy)))
	case hasBusy:
		parts = append(parts, "bound by congestion control: the path's rate, queue and loss")
	}
	if n, ok := get("retransmissions_count"); ok {
		parts = append(parts, fmt.Sprintf("%.0f retransmissions", n))
	}
	return strings.Join(parts, "; ")
}
