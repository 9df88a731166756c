package tcp

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"wirelab/results"
	"wirelab/workloads"
)

// streams gives every name a random stream of its own, as an Env does.
func streams(seed uint64) func(string) *rand.Rand {
	return func(name string) *rand.Rand {
		h := uint64(0)
		for _, c := range name {
			h = h*31 + uint64(c)
		}
		return rand.New(rand.NewPCG(seed, h))
	}
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.txt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestScheduleIsSeeded(t *testing.T) {
	a := &Arrivals{Process: "poisson", Rate: 500, Sizes: &Sizes{Distribution: "exponential", Mean: 10_000}}
	draw := func(a *Arrivals, seed uint64) []arrival {
		out, err := a.schedule(streams(seed), 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	one := draw(a, 1)
	if !reflect.DeepEqual(one, draw(a, 1)) {
		t.Error("the same seed gives another schedule")
	}
	if reflect.DeepEqual(one, draw(a, 2)) {
		t.Error("another seed gives the same schedule")
	}
	// Other sizes at the same times.
	b := &Arrivals{Process: "poisson", Rate: 500, Sizes: &Sizes{Distribution: "pareto", Mean: 10_000}}
	other := draw(b, 1)
	if len(other) != len(one) || other[10].at != one[10].at || other[10].size == one[10].size {
		t.Error("the times depend on the sizes")
	}
	// Poisson: 10000 +- 4 x 100 arrivals; exponential gaps have a coefficient of
	// variation of 1.
	if n := len(one); n < 9600 || n > 10400 {
		t.Errorf("%d arrivals of 10000", n)
	}
	var sum, squares float64
	for i := 1; i < len(one); i++ {
		gap := (one[i].at - one[i-1].at).Seconds()
		sum += gap
		squares += gap * gap
	}
	mean := sum / float64(len(one)-1)
	cv := math.Sqrt(squares/float64(len(one)-1)-mean*mean) / mean
	if cv < 0.9 || cv > 1.1 {
		t.Errorf("coefficient of variation %v", cv)
	}
}

func TestLoadFixesTheRate(t *testing.T) {
	a := &Arrivals{Process: "poisson", Load: 0.5, Capacity: 80_000_000, Sizes: &Sizes{Distribution: "fixed", Mean: 10_000}}
	if got := a.flowsPerSecond(); got != 500 { // 0.5 x 10 MB/s over 10 kB
		t.Errorf("%v flows a second", got)
	}
	// A cut distribution offers the load with its own mean.
	a.Sizes = &Sizes{Distribution: "exponential", Mean: 10_000, Max: 10_000}
	if got, want := a.flowsPerSecond(), 500/(1-1/math.E); math.Abs(got-want) > 1e-6*want {
		t.Errorf("%v flows a second, want %v", got, want)
	}
}

func TestSizesHaveTheirMean(t *testing.T) {
	cdf := write(t, "# size, cumulative probability\n100 0\n1000 0.5\n1000 0.6\n10000 1.0\n")
	for name, s := range map[string]*Sizes{
		"fixed":           {Distribution: "fixed", Mean: 5000},
		"exponential":     {Distribution: "exponential", Mean: 5000},
		"exponential cut": {Distribution: "exponential", Mean: 5000, Max: 6000},
		"pareto":          {Distribution: "pareto", Mean: 5000, Shape: 3},
		"pareto cut":      {Distribution: "pareto", Mean: 5000, Max: 50_000},
		"pareto flat":     {Distribution: "pareto", Mean: 5000, Max: 1000},
		"empirical":       {Distribution: "empirical", File: cdf},
		"empirical cut":   {Distribution: "empirical", File: cdf, Max: 4000},
	} {
		d, err := s.distribution()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		const n = 400_000
		var sum, most float64
		for range n {
			v := d.draw(r)
			sum += v
			most = max(most, v)
		}
		if got := sum / n; math.Abs(got-d.mean) > 0.02*d.mean {
			t.Errorf("%s: mean of the draws %v, said %v", name, got, d.mean)
		}
		if s.Max > 0 && most > float64(s.Max) {
			t.Errorf("%s: drew %v above %v", name, most, s.Max)
		}
	}
	// (100+1000)/2 x 0.5 + 1000 x 0.1 + (1000+10000)/2 x 0.4
	e, err := (&Sizes{Distribution: "empirical", File: cdf}).distribution()
	if err != nil || math.Abs(e.mean-2575) > 1e-9 {
		t.Errorf("empirical mean %v, %v", e.mean, err)
	}
}

func TestTraceOfArrivals(t *testing.T) {
	a := &Arrivals{Process: "trace", Trace: write(t, "# s, bytes\n0 1000\n0.5, 3\n\n0.75\t2000000\n")}
	got, err := a.schedule(nil, time.Hour)
	want := []arrival{{0, 1000}, {500 * time.Millisecond, headerSize}, {750 * time.Millisecond, 2_000_000}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	for text, words := range map[string]string{
		"0 1000\n1 x\n":      "file.txt:2",
		"1 1000\n0.5 1000\n": "sort the file",
		"1 1000 2\n":         "3 columns",
		"1 NaN\n":            "finite",
		"1 0\n":              "1e15 bytes",
		"# nothing\n":        "no arrivals",
	} {
		if _, err := readTrace(write(t, text)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestValidate(t *testing.T) {
	sizes := func() *Sizes { return &Sizes{Distribution: "fixed", Mean: 1000} }
	poisson := func(change func(*Arrivals)) func(*Workload) {
		return func(w *Workload) {
			w.Arrivals = &Arrivals{Process: "poisson", Rate: 1, Sizes: sizes()}
			change(w.Arrivals)
		}
	}
	for name, c := range map[string]struct {
		change      func(*Workload)
		path, words string
	}{
		"one node":      {func(w *Workload) { w.To = "" }, "", `"to"`},
		"on":            {func(w *Workload) { w.On = "a" }, "on", "from"},
		"flows":         {func(w *Workload) { w.Flows = 0 }, "flows", "between 1 and"},
		"congestion":    {func(w *Workload) { w.Congestion = "" }, "congestion", "cubic"},
		"bytes":         {func(w *Workload) { w.Bytes = 3 }, "bytes", "24"},
		"receive":       {func(w *Workload) { w.Receive = "eat" }, "receive", "discard"},
		"mss":           {func(w *Workload) { w.MSS = 20 }, "mss", "88"},
		"port":          {func(w *Workload) { w.Port = 66000 }, "port", "65535"},
		"ip":            {func(w *Workload) { w.IP = "v4" }, "ip", `"6"`},
		"interval":      {func(w *Workload) { w.Interval = 0 }, "interval", "1ms"},
		"info_interval": {func(w *Workload) { w.InfoInterval = 0 }, "info_interval", "1ms"},
		"both":          {func(w *Workload) { poisson(func(*Arrivals) {})(w); w.Flows = 2 }, "flows", "leave"},
		"both sizes":    {func(w *Workload) { poisson(func(*Arrivals) {})(w); w.Bytes = 1000 }, "bytes", "sizes"},
		"process":       {poisson(func(a *Arrivals) { a.Process = "pareto" }), "arrivals.process", "poisson"},
		"no sizes":      {poisson(func(a *Arrivals) { a.Sizes = nil }), "arrivals", "sizes {"},
		"no rate":       {poisson(func(a *Arrivals) { a.Rate = 0 }), "arrivals.rate", "capacity"},
		"two rates":     {poisson(func(a *Arrivals) { a.Load, a.Capacity = 0.5, 1e6 }), "arrivals.load", "keep one"},
		"no capacity":   {poisson(func(a *Arrivals) { a.Rate, a.Load = 0, 0.5 }), "arrivals.capacity", "share"},
		"too many":      {poisson(func(a *Arrivals) { a.Rate = 1e6 }), "arrivals.rate", "100000"},
		"negative":      {poisson(func(a *Arrivals) { a.Rate = -1 }), "arrivals.rate", "above zero"},
		"stray trace":   {poisson(func(a *Arrivals) { a.Trace = "x" }), "arrivals.trace", "trace"},
		"no trace":      {poisson(func(a *Arrivals) { *a = Arrivals{Process: "trace"} }), "arrivals.trace", "name a file"},
		"lost trace":    {poisson(func(a *Arrivals) { *a = Arrivals{Process: "trace", Trace: "/nowhere"} }), "arrivals.trace", "no such file"},
		"no mean":       {poisson(func(a *Arrivals) { a.Sizes.Mean = 0 }), "arrivals.sizes.mean", "mean ="},
		"shape":         {poisson(func(a *Arrivals) { a.Sizes.Shape = 2 }), "arrivals.sizes.shape", "leave"},
		"no finite":     {poisson(func(a *Arrivals) { a.Sizes.Distribution, a.Sizes.Shape = "pareto", 0.9 }), "arrivals.sizes.shape", "above 1"},
		"distribution":  {poisson(func(a *Arrivals) { a.Sizes.Distribution = "zipf" }), "arrivals.sizes.distribution", "empirical"},
		"no file":       {poisson(func(a *Arrivals) { a.Sizes = &Sizes{Distribution: "empirical"} }), "arrivals.sizes.file", "line"},
		"stray file":    {poisson(func(a *Arrivals) { a.Sizes.File = "x" }), "arrivals.sizes.file", "empirical"},
		"max":           {poisson(func(a *Arrivals) { a.Sizes.Max = 1 }), "arrivals.sizes.max", "24"},
	} {
		w := Kind().New().(*Workload)
		w.From, w.To = "a", "b"
		c.change(w)
		problems := w.Validate()
		if len(problems) != 1 {
			t.Errorf("%s: %d problems: %v", name, len(problems), problems)
			continue
		}
		if p := problems[0]; strings.Join(p.Path, ".") != c.path || !strings.Contains(p.Detail, c.words) {
			t.Errorf("%s: at %v: %s", name, p.Path, p.Detail)
		}
	}
}

func TestParseInfoOfOlderKernels(t *testing.T) {
	b := make([]byte, 256)
	binary.NativeEndian.PutUint32(b[offRTT:], 40_000)
	binary.NativeEndian.PutUint32(b[offCwnd:], 10)
	binary.NativeEndian.PutUint32(b[offSndMSS:], 1448)
	binary.NativeEndian.PutUint64(b[offDeliveryRate:], 12_500_000)
	binary.NativeEndian.PutUint16(b[offTotalRTO:], 3)
	i := parseInfo(b)
	if i.rtt != 40_000 || i.cwndBytes() != 14480 || i.deliveryRate != 12_500_000 || i.timeouts != 3 || !i.hasTimeouts() {
		t.Errorf("%+v", i)
	}
	i = parseInfo(b[:offDeliveryRate+4]) // Linux 4.8, and half a field
	if i.rtt != 40_000 || i.deliveryRate != 0 || i.hasTimeouts() {
		t.Errorf("%+v", i)
	}
	if i = parseInfo(nil); i != (info{}) {
		t.Errorf("%+v", i)
	}
}

func TestBins(t *testing.T) {
	b := newBins(1000, 1000+350, 100)
	for _, add := range []struct{ at, n int64 }{{999, 7}, {1000, 1}, {1099, 2}, {1100, 4}, {1349, 8}, {1400, 16}} {
		b.add(add.at, add.n)
	}
	var got []int64
	for i := range b.bytes {
		got = append(got, b.bytes[i].Load())
	}
	if !reflect.DeepEqual(got, []int64{3, 4, 0, 8}) {
		t.Errorf("bins %v", got)
	}
	if b.end(1) != 1200 || b.rate(1) != 4*8*1e9/100 {
		t.Errorf("bin 1 ends at %d with %v bit/s", b.end(1), b.rate(1))
	}
}

func TestHeader(t *testing.T) {
	h := header{7, 123456789, 1 << 40}
	got, err := parseHeader(h.append(nil))
	if err != nil || got != h {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseHeader([]byte("GET / HTTP/1.1\r\nHost: example")); err == nil {
		t.Error("a stranger's request was taken for a flow")
	}
}

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{{[]float64{5, 5, 5}, 1}, {[]float64{1, 0, 0, 0}, 0.25}, {nil, 0}, {[]float64{0, 0}, 0}, {[]float64{1, 3}, 0.8}} {
		if got := jain(c.shares); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.shares, got, c.want)
		}
	}
}

func TestSlowdown(t *testing.T) {
	i := ideal{rttNS: 20e6, rate: 8e6} // 1 byte a microsecond
	// 30 ms of handshake and way, 70 ms of transmission.
	if s, ok := i.slowdown(200e6, 70_000); !ok || math.Abs(s-2) > 1e-12 {
		t.Errorf("%v, %v", s, ok)
	}
	if _, ok := (ideal{rttNS: 20e6}).slowdown(1, 1); ok {
		t.Error("a slowdown without a capacity")
	}
}

// TestWindowCounts: what happened outside the window does not count.
func TestWindowCounts(t *testing.T) {
	a := workloads.Activity{WindowBegin: 100, WindowEnd: 200}
	o := &outgoing{beganNS: 50, endedNS: 300,
		base: info{retransmits: math.MaxUint32 - 1, dataSegments: 1000, busy: 10},
		last: info{retransmits: 3, dataSegments: 1500, busy: 10 + 50}}
	c := o.counted(a)
	if c.retransmissions != 5 || c.segments != 500 || c.lifeNS != 100 || c.busyUS != 50 {
		t.Errorf("%+v", c) // the counters wrap
	}
}

func TestReduce(t *testing.T) {
	record := func(role string, flow int32, values map[string]float64) results.Record {
		return results.Record{Role: role, Flow: flow, Values: values}
	}
	w := Kind().New().(*Workload)
	w.Flows = 2
	in := workloads.Reduction{Window: workloads.Window{Start: 5, End: 15}, Records: []results.Record{
		record(roleSender, -1, map[string]float64{"window_begin_s": 5, "window_end_s": 15, "flows_count": 2, "started_count": 2, "retransmissions_count": 3}),
		record(roleSender, 0, map[string]float64{"retransmissions_count": 3}),
		record(roleReceiver, -1, map[string]float64{"window_bytes": 1_250_000, "received_bytes": 2_000_000}),
		record(roleReceiver, 0, map[string]float64{"window_bytes": 1_250_000}),
		{Role: roleSender, Flow: -1, Name: workloads.UsageRecord, Values: map[string]float64{"cpu_s": 0.5}},
	}}
	out := w.Reduce(in)
	if out.Status != results.StatusOK || out.Values["goodput_bps"] != 1e6 || out.Values["received_bytes"] != 1_250_000 || out.Values["sender_cpu_s"] != 0.5 {
		t.Errorf("%+v", out)
	}
	if len(out.Flows) != 2 || out.Flows[0]["goodput_bps"] != 1e6 || out.Flows[1]["goodput_bps"] != 0 || out.Values["fairness_ratio"] != 0.5 {
		t.Errorf("flows %v, fairness %v", out.Flows, out.Values["fairness_ratio"])
	}
	// With bytes the goodput ends with the last byte.
	w.Bytes = 1_000_000
	in.Records[2].Values["last_completion_s"], in.Records[2].Values["completed_count"] = 7, 2
	if out = w.Reduce(in); out.Values["goodput_bps"] != 5e6 {
		t.Errorf("goodput %v over 2 s", out.Values["goodput_bps"])
	}
	in.Records[2].Values["completed_count"] = 1 // one is still going
	if out = w.Reduce(in); out.Values["goodput_bps"] != 1e6 || out.Values["unfinished_count"] != 1 {
		t.Errorf("%v", out.Values)
	}
	if out = w.Reduce(workloads.Reduction{Records: in.Records[2:3]}); out.Status != results.StatusNoData || len(out.Values) != 0 {
		t.Errorf("without a sender: %+v", out)
	}
	in.Records[2].Values = map[string]float64{"received_bytes": 0}
	if out = w.Reduce(in); out.Status != results.StatusNoData || len(out.Values) != 0 {
		t.Errorf("without payload: %+v", out)
	}
}
