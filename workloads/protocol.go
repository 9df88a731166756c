package workloads

import (
	"encoding/json"
	"math"
	"strconv"

	"wirelab/emul/hist"
	"wirelab/results"
)

// Protocol is the version of the actor protocol.
//
// The orchestrator writes one JSON object a line to the actor's stdin:
//
//	{"type":"spec", ...}          first: the fields of [Spec], and "protocol":1
//	{"type":"start","t0_ns":N}    T0 on CLOCK_MONOTONIC, about 200 ms ahead
//	{"type":"go","t0_ns":N}       for a role with "after": its own start
//	{"type":"stop"}               end: say the summary and exit
//
// End of file means that the orchestrator died: the actor exits at once.
//
// The actor writes one JSON object a line to file descriptor 3:
//
//	{"type":"ready","endpoints":{"data":"10.0.0.2:40123"}}
//	{"type":"sample","t_ns":N,"flow":0,"values":{"rtt_s":0.04}}
//	{"type":"hist","name":"rtt_s","flow":-1,"hist":{...}}
//	{"type":"summary","flow":0,"values":{...},"text":{...}}
//	{"type":"log","message":"..."}
//	{"type":"error","message":"...","status":"crashed"}   status: "failed" when absent
//	{"type":"unsupported","message":"..."}
//	{"type":"usage","values":{"cpu_s":1.5,"thread_load_ratio":0.7}}
//	{"type":"done"}
//
// t_ns is CLOCK_MONOTONIC; flow is -1 or absent where a value belongs to none.
// A value that is no finite number is null. Whatever the actor prints on
// stdout and stderr goes to its log.
const Protocol = 1

// The message types.
const (
	msgSpec        = "spec"
	msgStart       = "start"
	msgGo          = "go"
	msgStop        = "stop"
	msgReady       = "ready"
	msgSample      = "sample"
	msgHist        = "hist"
	msgSummary     = "summary"
	msgLog         = "log"
	msgError       = "error"
	msgUnsupported = "unsupported"
	msgUsage       = "usage"
	msgDone        = "done"
)

// Field is one named value of a sample. The name is a metric's name, as in
// "rtt_s": base SI unit last.
type Field struct {
	Name  string
	Value float64
}

// command is a line of stdin after the spec.
type command struct {
	Type string `json:"type"`
	T0NS int64  `json:"t0_ns,omitempty"`
}

// specMessage is the first line of stdin.
type specMessage struct {
	Type     string `json:"type"`
	Protocol int    `json:"protocol"`
	Spec
}

// message is a line of descriptor 3 in its general form.
type message struct {
	Type      string              `json:"type"`
	Endpoints map[string]string   `json:"endpoints,omitempty"`
	TimeNS    int64               `json:"t_ns,omitempty"`
	Flow      *int32              `json:"flow,omitempty"`
	Name      string              `json:"name,omitempty"`
	Values    map[string]*float64 `json:"values,omitempty"`
	Text      map[string]string   `json:"text,omitempty"`
	Hist      *hist.Histogram     `json:"hist,omitempty"`
	Message   string              `json:"message,omitempty"`
	Status    results.Status      `json:"status,omitempty"`
}

// flow returns the message's flow, -1 where it names none.
func (m *message) flow() int32 {
	if m.Flow == nil {
		return -1
	}
	return *m.Flow
}

// finite returns values with every NaN and infinity made null.
func finite(values map[string]float64) map[string]*float64 {
	out := make(map[string]*float64, len(values))
	for k, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			out[k] = nil
			continue
		}
		out[k] = &v
	}
	return out
}

// appendSample appends a sample line. encoding/json costs about ten times as
// much, and there are thousands of these a second.
func appendSample(b []byte, tNS int64, flow int32, fields []Field) []byte {
	b = append(b, `{"type":"sample","t_ns":`...)
	b = strconv.AppendInt(b, tNS, 10)
	b = append(b, `,"flow":`...)
	b = strconv.AppendInt(b, int64(flow), 10)
	b = append(b, `,"values":{`...)
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendName(b, f.Name)
		b = append(b, ':')
		if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, f.Value, 'g', -1, 64)
		}
	}
	return append(b, "}}\n"...)
}

// appendName appends a JSON string; metric names need no escapes.
func appendName(b []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			q, _ := json.Marshal(name) // a string always marshals
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, name...)
	return append(b, '"')
}

// sampleLine is a decoded sample; its fields are only valid until the next
// call of decodeSample.
type sampleLine struct {
	timeNS int64
	flow   int32
	fields []Field
	nulls  int
}

// samplePrefix begins every line that appendSample writes.
const samplePrefix = `{"type":"sample","t_ns":`

// decodeSample reads exactly what appendSample writes (names interned in
// names); ok is false for anything else, which is then read as general JSON.
func decodeSample(line []byte, names map[string]string, s *sampleLine) (ok bool) {
	if len(line) < len(samplePrefix) || string(line[:len(samplePrefix)]) != samplePrefix {
		return false
	}
	p := cursor{line[len(samplePrefix):]}
	t, ok1 := p.integer()
	ok2 := p.eat(`,"flow":`)
	f, ok3 := p.integer()
	if !ok1 || !ok2 || !ok3 || f < math.MinInt32 || f > math.MaxInt32 || !p.eat(`,"values":{`) {
		return false
	}
	s.timeNS, s.flow, s.fields, s.nulls = t, int32(f), s.fields[:0], 0
	for !p.eat("}") {
		if len(s.fields)+s.nulls > 0 && !p.eat(",") {
			return false
		}
		name, ok := p.name()
		if !ok || !p.eat(":") {
			return false
		}
		if p.eat("null") {
			s.nulls++
			continue
		}
		v, ok := p.number()
		if !ok {
			return false
		}
		known, ok := names[string(name)]
		if !ok {
			known = string(name)
			names[known] = known
		}
		s.fields = append(s.fields, Field{known, v})
	}
	return p.eat("}") && len(p.b) == 0
}

// cursor cuts tokens off the front of a line.
type cursor struct{ b []byte }

func (p *cursor) eat(token string) bool {
	if len(p.b) < len(token) || string(p.b[:len(token)]) != token {
		return false
	}
	p.b = p.b[len(token):]
	return true
}

// digits cuts off the longest run of characters of a number.
func (p *cursor) digits() []byte {
	n := 0
	for n < len(p.b) {
		c := p.b[n]
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		n++
	}
	d := p.b[:n]
	p.b = p.b[n:]
	return d
}

func (p *cursor) integer() (int64, bool) {
	v, err := strconv.ParseInt(string(p.digits()), 10, 64)
	return v, err == nil
}

func (p *cursor) number() (float64, bool) {
	v, err := strconv.ParseFloat(string(p.digits()), 64)
	return v, err == nil && !math.IsInf(v, 0)
}

// name cuts off a string without escapes.
func (p *cursor) name() ([]byte, bool) {
	if !p.eat(`"`) {
		return nil, false
	}
	for i, c := range p.b {
		switch {
		case c == '"':
			n := p.b[:i]
			p.b = p.b[i+1:]
			return n, true
		case c == '\\' || c < ' ' || c >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}
