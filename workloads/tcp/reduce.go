package tcp

import (
	"fmt"
	"maps"

	"wirelab/results"
	"wirelab/workloads"
)

// said is what the two roles reported, by flow; -1 is the role as a whole.
type said struct {
	sender, receiver       map[int32]map[string]float64
	senderCPU, receiverCPU float64
	hasSenderCPU, hasRCPU  bool
}

func collect(records []results.Record) said {
	s := said{sender: map[int32]map[string]float64{}, receiver: map[int32]map[string]float64{}}
	for _, r := range records {
		switch {
		case r.Name == workloads.UsageRecord:
			cpu, ok := r.Values["cpu_s"]
			if r.Role == roleSender {
				s.senderCPU, s.hasSenderCPU = cpu, ok
			} else {
				s.receiverCPU, s.hasRCPU = cpu, ok
			}
		case r.Name != "": // a histogram
		case r.Role == roleSender:
			s.sender[r.Flow] = r.Values
		case r.Role == roleReceiver:
			s.receiver[r.Flow] = r.Values
		}
	}
	return s
}

// Reduce turns what the two roles reported into metrics.
func (w *Workload) Reduce(in workloads.Reduction) workloads.Outcome {
	s := collect(in.Records)
	sender, receiver := s.sender[-1], s.receiver[-1]
	if sender == nil || receiver == nil {
		return workloads.Outcome{Status: results.StatusNoData, Notes: []string{"the sender or the receiver gave no summary"}}
	}
	out := workloads.Outcome{Values: map[string]float64{}, Status: results.StatusOK}
	w.reduceFlows(&out, s, window(w, sender, receiver))
	for _, d := range w.Metrics() {
		if v, ok := sender[d.Name]; ok {
			out.Values[d.Name] = v
		} else if v, ok := receiver[d.Name]; ok && d.Name != "received_bytes" {
			out.Values[d.Name] = v
		}
	}
	if s.hasSenderCPU {
		out.Values["sender_cpu_s"] = s.senderCPU
	}
	if s.hasRCPU {
		out.Values["receiver_cpu_s"] = s.receiverCPU
	}
	w.reduceCompletion(&out, sender, receiver)
	w.notes(&out, sender)
	if receiver["received_bytes"] == 0 {
		out = workloads.Outcome{Status: results.StatusNoData, Notes: append(out.Notes, "no payload arrived")}
	}
	return out
}

// window returns the length in s of what the goodput covers, 0 when empty.
func window(w *Workload, sender, receiver map[string]float64) float64 {
	begin, end := sender["window_begin_s"], sender["window_end_s"]
	if last, ok := receiver["last_completion_s"]; ok && w.Bytes > 0 && receiver["completed_count"] == float64(w.Flows) {
		end = min(end, last)
	}
	return max(0, end-begin)
}

// reduceFlows fills the goodput, per flow and in all.
func (w *Workload) reduceFlows(out *workloads.Outcome, s said, length float64) {
	receiver := s.receiver[-1]
	if length > 0 {
		out.Values["received_bytes"] = receiver["window_bytes"]
		out.Values["goodput_bps"] = receiver["window_bytes"] * 8 / length
		if w.Arrivals != nil {
			out.Values["offered_load_bps"] = s.sender[-1]["offered_bytes"] * 8 / length
		}
	}
	n := w.Flows
	if w.Arrivals != nil {
		n = int(s.sender[-1]["started_count"])
	}
	if n > maxFlowRecords {
		out.Notes = append(out.Notes, fmt.Sprintf("%d flows: more than %d are not reported one by one", n, maxFlowRecords))
		return
	}
	if w.Arrivals != nil {
		out.Flows = completed(s.receiver, n)
		return
	}
	shares := make([]float64, 0, n)
	for i := range int32(n) {
		flow := map[string]float64{}
		maps.Copy(flow, s.sender[i])
		r := s.receiver[i]
		putCompletion(flow, r)
		if length > 0 {
			// A flow that never got through delivered nothing.
			flow["received_bytes"] = r["window_bytes"]
			flow["goodput_bps"] = r["window_bytes"] * 8 / length
			shares = append(shares, flow["goodput_bps"])
		}
		out.Flows = append(out.Flows, flow)
	}
	if j := jain(shares); j > 0 {
		out.Values["fairness_ratio"] = j
	}
}

// completed returns what the receiver said of arriving flows that started in
// the window and completed, in the order of their start.
func completed(receiver map[int32]map[string]float64, n int) []map[string]float64 {
	var out []map[string]float64
	for i := range int32(n) {
		flow := map[string]float64{}
		putCompletion(flow, receiver[i])
		if _, done := flow["fct_s"]; done {
			out = append(out, flow)
		}
	}
	return out
}

// putCompletion copies what a flow with a size has.
func putCompletion(flow, receiver map[string]float64) {
	for _, name := range []string{"fct_s", "slowdown_ratio", "size_bytes"} {
		if v, ok := receiver[name]; ok {
			flow[name] = v
		}
	}
}

// reduceCompletion fills what flows with a size have.
func (w *Workload) reduceCompletion(out *workloads.Outcome, sender, receiver map[string]float64) {
	if w.Bytes == 0 && w.Arrivals == nil {
		return
	}
	started := sender["started_count"]
	if w.Arrivals != nil {
		started = sender["window_started_count"]
		out.Values["started_count"] = started
	}
	unfinished := max(0, started-receiver["completed_count"])
	out.Values["unfinished_count"] = unfinished
	if v, ok := receiver["fct_mean_s"]; ok {
		out.Values["fct_s"] = v
	}
	if v, ok := receiver["slowdown_mean_ratio"]; ok {
		out.Values["slowdown_ratio"] = v
	}
	if started > 0 && unfinished/started > 0.01 {
		out.Notes = append(out.Notes, fmt.Sprintf("%.0f of %.0f flows did not complete before the end of the load: completion times leave them out", unfinished, started))
	}
}

// The lateness in s of one arrival in a hundred from which the generator is in
// doubt, and from which the load was not what was asked.
const (
	doubtfulLateness = 0.010
	invalidLateness  = 0.100
)

func (w *Workload) notes(out *workloads.Outcome, sender map[string]float64) {
	late := sender["start_lateness_p99_s"]
	reason := fmt.Sprintf("generator fell behind: 1 %% of the flows started %.0f ms or more after their time", late*1e3)
	switch {
	case late > invalidLateness:
		out.Invalid = append(out.Invalid, reason)
	case late > doubtfulLateness:
		out.Notes = append(out.Notes, reason)
	}
	if _, ok := out.Values["goodput_bps"]; !ok && w.Bytes > 0 {
		out.Notes = append(out.Notes, "all flows ended before the measurement window began: only their completion is known; leave warmup out")
	}
	if failed := sender["failed_count"]; failed > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%.0f of %.0f flows failed, see the sender's log", failed, sender["started_count"]))
	}
}
