package workloads

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"wirelab/results"
	"wirelab/workloads/lenient"
)

// maxLine bounds one message; a longer one is skipped and counted.
const maxLine = 16 << 20

// report collects what one actor says. It never fails: a line that cannot be
// read is counted, kept in the log and skipped.
type report struct {
	actor, role string
	record      func(results.Sample)
	log         func(string)

	ready               chan struct{} // closed on "ready"
	finished            chan struct{} // closed on "done", or at the end
	readyOnce, doneOnce sync.Once

	mu          sync.Mutex // guards what follows
	t0          int64
	endpoints   map[string]string
	records     []results.Record
	failure     string // of the first error message
	crashed     bool   // what it says of itself
	unsupported string
	saidDone    bool
	missing     int // values that were no finite number
	badLines    int
	early       int // samples before T0 was known
	samples     int
	cpu, load   float64 // of the window, from the usage message
	windowS     float64
}

func newReport(workload, role string, record func(results.Sample), log func(string)) *report {
	return &report{
		actor: workload + "." + role, role: role, record: record, log: log,
		ready: make(chan struct{}), finished: make(chan struct{}),
	}
}

// read takes messages until the end of r.
func (r *report) read(from io.Reader) {
	lines := bufio.NewReaderSize(from, 256<<10)
	names := make(map[string]string)
	var s sampleLine
	for {
		line, err := readLine(lines)
		if len(line) > 0 {
			if decodeSample(line, names, &s) {
				r.takeSample(s.timeNS, s.flow, s.fields, s.nulls)
			} else {
				r.takeLine(line)
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine returns a line without its end, valid until the next call. Of a
// line above maxLine only the begin is kept.
func readLine(lines *bufio.Reader) ([]byte, error) {
	line, err := lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := append([]byte(nil), line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = lines.ReadSlice('\n')
			if len(long) < maxLine {
				long = append(long, line...)
			}
		}
		line = long
	}
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line, err
}

func (r *report) takeSample(tNS int64, flow int32, fields []Field, nulls int) {
	r.mu.Lock()
	t0 := r.t0
	r.missing += nulls
	if t0 == 0 {
		r.early++
	}
	r.samples += len(fields)
	r.mu.Unlock()
	if t0 == 0 || r.record == nil {
		return
	}
	t := float64(tNS-t0) / 1e9
	for _, f := range fields {
		r.record(results.Sample{Actor: r.actor, Flow: flow, Metric: f.Name, Time: t, Value: f.Value})
	}
}

// takeLine reads a message in any JSON spelling, NaN included.
func (r *report) takeLine(line []byte) {
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		// A value given as NaN becomes null, counted below like any other null.
		clean, _ := lenient.Clean(line)
		m = message{}
		if err := json.Unmarshal(clean, &m); err != nil {
			r.mu.Lock()
			r.badLines++
			r.mu.Unlock()
			r.log(fmt.Sprintf("unreadable message (%v): %.200s", err, line))
			return
		}
	}
	if m.Type == msgSample {
		fields, nulls := m.fields()
		r.takeSample(m.TimeNS, m.flow(), fields, nulls)
		return
	}
	r.take(&m)
}

func (m *message) fields() ([]Field, int) {
	fields, nulls := make([]Field, 0, len(m.Values)), 0
	for name, v := range m.Values {
		if v == nil {
			nulls++
			continue
		}
		fields = append(fields, Field{name, *v})
	}
	return fields, nulls
}

func (r *report) take(m *message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch m.Type {
	case msgReady:
		r.endpoints = m.Endpoints
		r.readyOnce.Do(func() { close(r.ready) })
	case msgHist:
		r.records = append(r.records, results.Record{Actor: r.actor, Role: r.role, Flow: m.flow(), Name: m.Name, Hist: m.Hist})
	case msgSummary:
		fields, nulls := m.fields()
		values := make(map[string]float64, len(fields))
		for _, f := range fields {
			values[f.Name] = f.Value
		}
		r.missing += nulls
		r.records = append(r.records, results.Record{Actor: r.actor, Role: r.role, Flow: m.flow(), Values: values, Text: m.Text})
	case msgUsage:
		r.takeUsage(m)
	case msgLog:
		r.log(m.Message)
	case msgError:
		if r.failure == "" {
			r.failure, r.crashed = m.Message, m.Status == results.StatusCrashed
		}
		r.log("error: " + m.Message)
	case msgUnsupported:
		if r.unsupported == "" {
			r.unsupported = m.Message
		}
		r.log("unsupported: " + m.Message)
	case msgDone:
		r.saidDone = true
		r.finish()
	}
	// Other types belong to a later protocol and are ignored.
}

// takeUsage keeps the role's CPU time, also as a record for Reduce.
func (r *report) takeUsage(m *message) {
	values := make(map[string]float64)
	for _, f := range []struct {
		name string
		into *float64
	}{{"cpu_s", &r.cpu}, {"thread_load_ratio", &r.load}, {"length_s", &r.windowS}} {
		if v := m.Values[f.name]; v != nil {
			*f.into = *v
			values[f.name] = *v
		}
	}
	r.records = append(r.records, results.Record{Actor: r.actor, Role: r.role, Flow: -1, Name: UsageRecord, Values: values})
}

// UsageRecord names the record of a role's use of the processor in the
// measurement window: cpu_s, thread_load_ratio, length_s.
const UsageRecord = "usage"

// finish says that no more work comes from this actor.
func (r *report) finish() { r.doneOnce.Do(func() { close(r.finished) }) }
