package workloads

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"wirelab/emul/hist"
	"wirelab/results"
)

func TestSampleLineIsJSONAndReadsBack(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields []Field
		nulls  int
	}{
		{"plain", []Field{{"rtt_s", 0.0401}, {"cwnd_bytes", 144800}}, 0},
		{"extremes", []Field{{"a_s", math.MaxFloat64}, {"b_s", 5e-324}, {"c_s", math.Copysign(0, -1)}, {"d_s", 1e21}}, 0},
		{"missing", []Field{{"a_s", math.NaN()}, {"b_s", 1}, {"c_s", math.Inf(-1)}}, 2},
		{"none", nil, 0},
		{"only missing", []Field{{"a_s", math.NaN()}, {"b_s", math.NaN()}}, 2},
	} {
		line := appendSample(nil, 123456789012345, -1, c.fields)
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			t.Errorf("%s: %v: %s", c.name, err, line)
			continue
		}
		var s sampleLine
		if !decodeSample(bytes.TrimRight(line, "\n"), map[string]string{}, &s) {
			t.Errorf("%s: not read back: %s", c.name, line)
			continue
		}
		if s.timeNS != 123456789012345 || s.flow != -1 || s.nulls != c.nulls || m.TimeNS != s.timeNS {
			t.Errorf("%s: %+v", c.name, s)
		}
		var want []Field
		for _, f := range c.fields {
			if !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) {
				want = append(want, f)
			}
		}
		if len(want) != len(s.fields) {
			t.Fatalf("%s: %v, want %v", c.name, s.fields, want)
		}
		for i, f := range want {
			if s.fields[i] != f {
				t.Errorf("%s: %v, want %v", c.name, s.fields[i], f)
			}
		}
	}
}

func TestSampleNameWithEscapes(t *testing.T) {
	line := appendSample(nil, 1, 0, []Field{{"odd\"näme\n", 1}})
	var s sampleLine
	if decodeSample(bytes.TrimRight(line, "\n"), map[string]string{}, &s) {
		t.Error("the fast reader takes a name with escapes")
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil || m.Values["odd\"näme\n"] == nil {
		t.Errorf("%v: %s", err, line)
	}
}

// readAll feeds lines to a report with T0 = 1 s.
func readAll(lines string) (*report, []results.Sample, []string) {
	var samples []results.Sample
	var log []string
	r := newReport("w", "sender", func(s results.Sample) { samples = append(samples, s) }, func(l string) { log = append(log, l) })
	r.t0 = 1e9
	r.read(strings.NewReader(lines))
	return r, samples, log
}

func TestReportReadsWhatProgramsWrite(t *testing.T) {
	lines := strings.Join([]string{
		`{"type":"ready","endpoints":{"data":"10.0.0.2:1"}}`,
		`{"type":"sample","t_ns":1500000000,"flow":3,"values":{"rtt_s":0.5}}`,
		`{ "values": {"rtt_s": NaN, "cwnd_bytes": 7}, "t_ns": 2000000000, "type": "sample" }`,
		`{"type":"summary","flow":1,"values":{"a_count":-inf,"b_count":2},"text":{"congestion":"reno"}}`,
		`{"type":"usage","values":{"cpu_s":1,"thread_load_ratio":0.5,"length_s":2}}`,
		`panic: something`,
		`{"type":"sample","t_ns":1,`,
		``,
		`{"type":"future thing"}`,
		`{"type":"log","message":"hello"}`,
		`{"type":"error","message":"first"}`,
		`{"type":"error","message":"second"}`,
		`{"type":"done"}`,
	}, "\n")
	r, samples, log := readAll(lines)
	want := []results.Sample{
		{Actor: "w.sender", Flow: 3, Metric: "rtt_s", Time: 0.5, Value: 0.5},
		{Actor: "w.sender", Flow: -1, Metric: "cwnd_bytes", Time: 1, Value: 7},
	}
	if len(samples) != 2 || samples[0] != want[0] || samples[1] != want[1] {
		t.Errorf("samples %+v", samples)
	}
	if r.missing != 2 || r.badLines != 2 || r.failure != "first" || !r.saidDone || r.endpoints["data"] != "10.0.0.2:1" {
		t.Errorf("report %+v", r)
	}
	if len(r.records) != 2 || r.records[0].Values["b_count"] != 2 || len(r.records[0].Values) != 1 || r.records[0].Text["congestion"] != "reno" {
		t.Errorf("records %+v", r.records)
	}
	if all := strings.Join(log, "\n"); !strings.Contains(all, "hello") || !strings.Contains(all, "panic: something") {
		t.Errorf("log %q", all)
	}
}

func TestReportSkipsAnEndlessLine(t *testing.T) {
	long := strings.Repeat("x", maxLine+maxLine/2)
	r, samples, _ := readAll(long + "\n" + `{"type":"sample","t_ns":1500000000,"flow":0,"values":{"rtt_s":1}}` + "\n")
	if len(samples) != 1 || r.badLines != 1 {
		t.Errorf("%d samples, %d bad lines", len(samples), r.badLines)
	}
}

func TestHistogramsCross(t *testing.T) {
	h := &hist.Histogram{}
	for i := range int64(1000) {
		h.Record(i * 1000)
	}
	var out bytes.Buffer
	s := newStream(&out)
	flow := int32(4)
	s.message(&message{Type: msgHist, Name: "rtt_s", Flow: &flow, Hist: h})
	s.flush()
	r, _, _ := readAll(out.String())
	if len(r.records) != 1 || r.records[0].Hist == nil {
		t.Fatalf("records %+v", r.records)
	}
	got := r.records[0]
	if got.Name != "rtt_s" || got.Flow != 4 || got.Hist.Count() != 1000 || got.Hist.Quantile(0.5) != h.Quantile(0.5) {
		t.Errorf("histogram %+v", got)
	}
}

// TestRandomStreams: streams are reproducible, differ by name and by seed.
func TestRandomStreams(t *testing.T) {
	draw := func(seed uint64, name string) uint64 {
		return newEnv(Spec{Seed: seed}, newStream(&bytes.Buffer{})).Rand(name).Uint64()
	}
	if first, second := draw(1, "a"), draw(1, "a"); first != second {
		t.Error("equal seed and name draw differently")
	}
	if draw(1, "a") == draw(1, "b") || draw(1, "a") == draw(2, "a") {
		t.Error("another seed or name draws the same")
	}
}

func FuzzReport(f *testing.F) {
	for _, s := range []string{
		`{"type":"sample","t_ns":15,"flow":3,"values":{"rtt_s":0.5}}`,
		`{"type":"sample","t_ns":15,"flow":-1,"values":{"rtt_s":null,"x":1e400}}`,
		`{"type":"sample","t_ns":-9223372036854775808,"flow":99999999999,"values":{}}`,
		`{"type":"hist","name":"x","hist":{"n":1,"sum":1,"min":1,"max":1,"buckets":[[99999,1]]}}`,
		`{"type":"summary","values":{"a":-nan(ind),"b":Infinity}}`,
		`{"type":"ready"}` + "\n" + `{"type":"ready","endpoints":null}`,
		"\x00\xff\n{\"type\":\"done\"}\r\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, samples, _ := readAll(text)
		for _, s := range samples {
			if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
				t.Errorf("a value that is no finite number got through: %+v", s)
			}
		}
		// Whatever the fast reader takes, the general one reads the same.
		for line := range strings.SplitSeq(text, "\n") {
			var fast sampleLine
			var m message
			if !decodeSample([]byte(line), map[string]string{}, &fast) || json.Unmarshal([]byte(line), &m) != nil {
				continue
			}
			if m.TimeNS != fast.timeNS || m.flow() != fast.flow {
				t.Errorf("%q: %+v and %+v", line, fast, m)
			}
			for _, v := range fast.fields {
				if m.Values[v.Name] == nil {
					t.Errorf("%q: %s read by one reader only", line, v.Name)
				}
			}
		}
	})
}

func BenchmarkAppendSample(b *testing.B) {
	fields := []Field{{"rtt_s", 0.040123}, {"cwnd_bytes", 144800}, {"retransmissions_count", 12}, {"delivery_rate_bps", 95_612_344}}
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buf = appendSample(buf[:0], 123456789012345, 7, fields)
	}
}

func BenchmarkDecodeSample(b *testing.B) {
	fields := []Field{{"rtt_s", 0.040123}, {"cwnd_bytes", 144800}, {"retransmissions_count", 12}, {"delivery_rate_bps", 95_612_344}}
	line := bytes.TrimRight(appendSample(nil, 123456789012345, 7, fields), "\n")
	names := map[string]string{}
	var s sampleLine
	b.ReportAllocs()
	for b.Loop() {
		if !decodeSample(line, names, &s) {
			b.Fatal("not read")
		}
	}
}
