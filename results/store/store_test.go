package store_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirelab/results"
	"wirelab/results/store"
)

var stamp = store.Options{Now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), ID: "abc"}

func create(t *testing.T, root string, opt store.Options) *store.Dir {
	t.Helper()
	d, err := store.Create(root, "buffers", opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func point(buffer float64) results.Point {
	text := results.ExactFloat(buffer)
	return results.Point{ID: "buffer=" + text, Sweep: []results.SweepValue{{Name: "buffer", Text: text, Number: &buffer}}}
}

func sampleRun(index int, p results.Point, rep int) *results.Run {
	return &results.Run{
		Index: index, Point: p, Repetition: rep, Status: results.StatusOK, Valid: true, Attempts: 1, PlanHash: "h" + p.ID,
		Values: []results.Value{{Metric: "cubic.rtt_p99_s", Value: 0.0801234567890123, Unit: "s"}, {Metric: "cubic.goodput_bps", Value: 47e6, Unit: "bit/s"}},
	}
}

func commit(t *testing.T, d *store.Dir, run *results.Run, samples ...results.Sample) {
	t.Helper()
	w, err := d.BeginRun(run.Index, run.Point)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.Path(), "actors", "cubic.sender.log"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		w.Sample(s)
	}
	if err := w.Commit(run); err != nil {
		t.Fatal(err)
	}
}

func TestRunIsCompleteOrAbsent(t *testing.T) {
	d := create(t, t.TempDir(), stamp)
	w, err := d.BeginRun(0, point(0.5))
	if err != nil {
		t.Fatal(err)
	}
	w.Sample(results.Sample{Actor: "a", Metric: "m", Value: 1})
	if runs, err := d.Runs(); err != nil || len(runs) != 0 {
		t.Fatalf("before Commit: runs %v, err %v; want none", runs, err)
	}
	w.Abort()
	entries, err := os.ReadDir(filepath.Join(d.Path(), store.RunsName))
	if err != nil || len(entries) != 0 {
		t.Fatalf("after Abort: %v, %v; want an empty directory", entries, err)
	}
	if err := w.Commit(sampleRun(0, point(0.5), 0)); err == nil {
		t.Error("Commit after Abort succeeds")
	}

	want := sampleRun(1, point(1), 0)
	commit(t, d, want, results.Sample{Actor: "cubic.sender", Flow: 3, Metric: "cwnd_bytes", Time: 0.01, Value: 14480})
	runs, err := d.Runs()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]*results.Run{want}, runs); diff != "" {
		t.Errorf("run read back differs (-want +got):\n%s", diff)
	}
	if err := d.Verify(runs[0]); err != nil {
		t.Errorf("Verify of an untouched run: %v", err)
	}
	if got := runs[0].Files; len(got) != 2 || got[0].Name != "actors/cubic.sender.log" || got[1].Name != store.SamplesName {
		t.Errorf("files = %v", got)
	}
}

func TestSamplesRoundTrip(t *testing.T) {
	d := create(t, t.TempDir(), stamp)
	w, err := d.BeginRun(2, point(1))
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 4, 5000
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for k := range each {
				w.Sample(results.Sample{Actor: "w" + string(rune('0'+i)), Flow: int32(i) - 1, Metric: "m", Time: float64(k) / 100, Value: float64(k) * 1.1})
			}
		})
	}
	wg.Wait()
	w.Sample(results.Sample{Actor: "bad", Metric: "m", Value: math.NaN()})
	w.Sample(results.Sample{Actor: "bad", Metric: "m", Time: math.Inf(1)})
	run := sampleRun(2, point(1), 0)
	if err := w.Commit(run); err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for s, err := range d.Samples(run) {
		if err != nil {
			t.Fatal(err)
		}
		k := next[s.Actor]
		next[s.Actor]++
		want := results.Sample{Actor: s.Actor, Flow: int32(s.Actor[1]-'0') - 1, Metric: "m", Time: float64(k) / 100, Value: float64(k) * 1.1}
		if s != want {
			t.Fatalf("sample %d of %s = %+v, want %+v", k, s.Actor, s, want)
		}
	}
	for i := range writers {
		if name := "w" + string(rune('0'+i)); next[name] != each {
			t.Errorf("%s has %d samples, want %d", name, next[name], each)
		}
	}
	if len(next) != writers {
		t.Errorf("actors = %v: samples that are not finite must be left out", next)
	}
}

// TestManySamples crosses the bound at which rows are written before Commit.
func TestManySamples(t *testing.T) {
	d := create(t, t.TempDir(), stamp)
	w, err := d.BeginRun(0, point(1))
	if err != nil {
		t.Fatal(err)
	}
	const n = 1<<20 + 12345
	for i := range n {
		w.Sample(results.Sample{Actor: "a", Flow: int32(i % 5), Metric: []string{"x_s", "y_bps"}[i%2], Time: float64(i) / 1e3, Value: float64(i)})
	}
	if err := w.Err(); err != nil {
		t.Fatal(err)
	}
	run := sampleRun(0, point(1), 0)
	if err := w.Commit(run); err != nil {
		t.Fatal(err)
	}
	i := 0
	for s, err := range d.Samples(run) {
		if err != nil {
			t.Fatal(err)
		}
		if want := (results.Sample{Actor: "a", Flow: int32(i % 5), Metric: []string{"x_s", "y_bps"}[i%2], Time: float64(i) / 1e3, Value: float64(i)}); s != want {
			t.Fatalf("row %d = %+v, want %+v", i, s, want)
		}
		i++
	}
	if i != n {
		t.Errorf("%d rows, want %d", i, n)
	}
}

func TestNoSamplesIsAnEmptyTable(t *testing.T) {
	d := create(t, t.TempDir(), stamp)
	run := sampleRun(0, point(1), 0)
	commit(t, d, run)
	for s, err := range d.Samples(run) {
		t.Fatalf("got %v, %v; want no row", s, err)
	}
}

func TestNotFiniteValuesBecomeMissing(t *testing.T) {
	d := create(t, t.TempDir(), stamp)
	run := sampleRun(0, point(1), 0)
	run.Values = append(run.Values, results.Value{Metric: "x.nan_ratio", Value: math.NaN(), Unit: "1"})
	run.Flows = map[string][]map[string]float64{"cubic": {{"a_s": 1, "b_s": math.Inf(-1)}}}
	run.Links = []results.LinkRecord{{Name: "net.b", Calibration: &results.Calibration{RTTMeasuredS: math.NaN()}}}
	commit(t, d, run)
	runs, err := d.Runs()
	if err != nil || len(runs) != 1 {
		t.Fatalf("runs %v, err %v", runs, err)
	}
	got := runs[0]
	if len(got.Values) != 2 || len(got.Flows["cubic"][0]) != 1 {
		t.Errorf("values %v, flows %v: want the NaN and the Inf gone", got.Values, got.Flows)
	}
	if got.Status != results.StatusPartial || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "2 value(s)") {
		t.Errorf("status %q, notes %q: want partial and a note on 2 values", got.Status, got.Notes)
	}
}

func TestSummary(t *testing.T) {
	runs := []*results.Run{sampleRun(1, point(1), 0), sampleRun(0, point(0.5), 0)}
	runs[0].Valid = false
	got, err := store.Summary(runs, []string{"buffer", "unit"})
	if err != nil {
		t.Fatal(err)
	}
	want := `run,point,repetition,valid,buffer,sweep.unit,metric,value,unit
0,buffer=0.5,0,true,0.5,,cubic.goodput_bps,4.7e+07,bit/s
0,buffer=0.5,0,true,0.5,,cubic.rtt_p99_s,0.0801234567890123,s
1,buffer=1,0,false,1,,cubic.goodput_bps,4.7e+07,bit/s
1,buffer=1,0,false,1,,cubic.rtt_p99_s,0.0801234567890123,s
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("summary.csv (-want +got):\n%s", diff)
	}
}

func TestCreatePlaces(t *testing.T) {
	root := t.TempDir()
	d := create(t, root, stamp)
	if want := filepath.Join(root, "buffers", "20260304-050607-abc"); d.Path() != want {
		t.Errorf("path = %s, want %s", d.Path(), want)
	}
	link := filepath.Join(root, "buffers", store.LatestName)
	if target, err := os.Readlink(link); err != nil || target != "20260304-050607-abc" {
		t.Errorf("latest -> %q, %v", target, err)
	}
	later := create(t, root, store.Options{Now: stamp.Now.Add(time.Second), ID: "def"})
	if target, _ := os.Readlink(link); target != "20260304-050608-def" {
		t.Errorf("latest -> %q, want the newer", target)
	}
	if err := later.Discard(); err != nil {
		t.Fatal(err)
	}
	if target, _ := os.Readlink(link); target != "20260304-050607-abc" {
		t.Errorf("latest -> %q after discarding the newer, want the older", target)
	}
	if err := d.Discard(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(root); len(left) != 0 {
		t.Errorf("left after discarding all: %v", left)
	}

	exact := filepath.Join(root, "out", "mine")
	if err := os.MkdirAll(exact, 0o755); err != nil {
		t.Fatal(err)
	}
	e := create(t, root, store.Options{Dir: exact})
	if e.Path() != exact {
		t.Errorf("path = %s, want %s", e.Path(), exact)
	}
	e.Close()
	if _, err := store.Create(root, "x", store.Options{Dir: exact}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("Create in a used directory: %v, want a refusal", err)
	}
}

// TestDiscardKeepsWhatIsNotOurs gives a directory back as it was found.
func TestDiscardKeepsWhatIsNotOurs(t *testing.T) {
	begin := func(t *testing.T, dir string) {
		t.Helper()
		d := create(t, "", store.Options{Dir: dir})
		if err := errors.Join(d.WriteManifest(&results.Manifest{Schema: "test/1"}), d.WriteFile(store.ExperimentName, nil)); err != nil {
			t.Fatal(err)
		}
		if _, err := d.BeginRun(0, point(1)); err != nil {
			t.Fatal(err)
		}
		if dir == "." {
			if err := os.WriteFile("notes.txt", nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d.Close()
		// As after an interrupt: the lock sweeps the unfinished run away.
		if err := d.Discard(); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("the working directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		begin(t, ".")
		if left, _ := filepath.Glob("*"); len(left) != 1 || left[0] != "notes.txt" {
			t.Errorf("left: %v, want only the user's file", left)
		}
	})
	t.Run("a link", func(t *testing.T) {
		root := t.TempDir()
		target, link := filepath.Join(root, "target"), filepath.Join(root, "link")
		if err := errors.Join(os.Mkdir(target, 0o755), os.Symlink(target, link)); err != nil {
			t.Fatal(err)
		}
		begin(t, link)
		if left, err := os.ReadDir(link); err != nil || len(left) != 0 {
			t.Errorf("the link leads to %v, %v; want an empty directory", left, err)
		}
	})
	t.Run("a new one", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "new")
		begin(t, dir)
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the directory that Create made is still there: %v", err)
		}
	})
}

// TestEmptyRecords reads JSON that is whole and says nothing.
func TestEmptyRecords(t *testing.T) {
	d := create(t, t.TempDir(), stamp)
	commit(t, d, sampleRun(0, results.Point{ID: "all"}, 0))
	runs, _ := d.Runs()
	for _, text := range []string{"{}", "null"} {
		if err := errors.Join(
			os.WriteFile(filepath.Join(d.RunPath(runs[0]), store.RunName), []byte(text), 0o644),
			os.WriteFile(filepath.Join(d.Path(), store.ManifestName), []byte(text), 0o644),
		); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Runs(); len(got) != 0 || err == nil {
			t.Errorf("run.json %s: %d runs, %v; want none and an error", text, len(got), err)
		}
		if m, err := d.Manifest(); err == nil {
			t.Errorf("manifest.json %s: %+v, want an error", text, m)
		}
	}
}

func TestOneWriter(t *testing.T) {
	d := create(t, t.TempDir(), stamp)
	if err := d.WriteManifest(&results.Manifest{Schema: "test/1", Experiment: "buffers"}); err != nil {
		t.Fatal(err)
	}
	other, err := store.Open(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if m, err := other.Manifest(); err != nil || m.Experiment != "buffers" {
		t.Errorf("reading beside a writer: %v, %v", m, err)
	}
	if _, err := other.BeginRun(0, point(1)); !errors.Is(err, store.ErrInUse) {
		t.Errorf("second writer: %v, want ErrInUse", err)
	}
	unfinished, err := d.BeginRun(0, point(1))
	if err != nil {
		t.Fatal(err)
	}
	d.Close() // as when the process dies: the run stays unfinished
	if err := other.Lock(); err != nil {
		t.Fatalf("after the writer has gone: %v", err)
	}
	if _, err := os.Stat(unfinished.Path()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished run is still there: %v", err)
	}
}

func TestBrokenFilesAreNamedAndOthersRead(t *testing.T) {
	d := create(t, t.TempDir(), stamp)
	for i := range 3 {
		commit(t, d, sampleRun(i, point(1), i), results.Sample{Actor: "a", Metric: "m", Value: 1})
	}
	runs, _ := d.Runs()
	broken := filepath.Join(d.RunPath(runs[1]), store.RunName)
	text, _ := os.ReadFile(broken)
	if err := os.WriteFile(broken, text[:len(text)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	samples := filepath.Join(d.RunPath(runs[2]), store.SamplesName)
	full, _ := os.ReadFile(samples)
	if err := os.WriteFile(samples, full[:len(full)-20], 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := d.Runs()
	if len(got) != 2 || err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("%d runs, err %v; want 2 and an error naming %s", len(got), err, broken)
	}
	var readErr error
	for _, err := range d.Samples(runs[2]) {
		readErr = err
	}
	if readErr == nil || !strings.Contains(readErr.Error(), samples) {
		t.Errorf("truncated samples: %v; want an error naming %s", readErr, samples)
	}
	if err := d.Verify(runs[2]); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("Verify of a truncated file: %v", err)
	}
	// Any cut, and any flipped byte, gives rows or an error: never a panic.
	for i := 0; i < len(full); i += 7 {
		flipped := append([]byte{}, full...)
		flipped[i] ^= 0xff
		for _, data := range [][]byte{full[:i], flipped} {
			if err := os.WriteFile(samples, data, 0o644); err != nil {
				t.Fatal(err)
			}
			for range d.Samples(runs[2]) {
			}
		}
	}
}

func TestResumeAndReuse(t *testing.T) {
	root := t.TempDir()
	host := results.Host{Hostname: "lab", Kernel: "6.1", Cores: 2, LoadAverage: "0.1"}
	d := create(t, root, stamp)
	m := &results.Manifest{Schema: "test/1", Host: host}
	for i := range 3 {
		m.Runs = append(m.Runs, results.RunStatus{Index: i, Point: "buffer=1"})
	}
	if err := d.WriteManifest(m); err != nil {
		t.Fatal(err)
	}
	commit(t, d, sampleRun(0, point(1), 0), results.Sample{Actor: "a", Metric: "m", Time: 1, Value: 2})
	failed := sampleRun(1, point(1), 1)
	failed.Status = results.StatusFailed
	commit(t, d, failed)
	runs, err := d.Runs()
	if err != nil {
		t.Fatal(err)
	}
	missing := store.Missing(m, runs)
	if len(missing) != 2 || missing[0].Index != 1 || missing[1].Index != 2 {
		t.Errorf("missing = %v, want runs 1 (failed) and 2 (never made)", missing)
	}
	commit(t, d, sampleRun(1, point(1), 1)) // made again: replaces the failed one
	runs, _ = d.Runs()
	if len(runs) != 2 || runs[1].Status != results.StatusOK {
		t.Errorf("after making run 1 again: %v", runs)
	}

	now := host
	now.LoadAverage, now.BootID = "3.0", "other"
	old, err := d.Find("hbuffer=1", now, nil)
	if err != nil || old == nil || old.Index != 0 {
		t.Fatalf("Find = %v, %v; want run 0", old, err)
	}
	if again, _ := d.Find("hbuffer=1", now, []int{0}); again == nil || again.Index != 1 {
		t.Errorf("Find without run 0 = %v, want run 1", again)
	}
	samples := filepath.Join(d.RunPath(old), store.SamplesName)
	whole, _ := os.ReadFile(samples)
	if err := os.WriteFile(samples, whole[:len(whole)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if other, err := d.Find("hbuffer=1", now, nil); err != nil || other == nil || other.Index != 1 {
		t.Errorf("Find beside a run with broken samples = %v, %v; want run 1", other, err)
	}
	if err := os.WriteFile(samples, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	now.Kernel = "6.2"
	if got, _ := d.Find("hbuffer=1", now, nil); got != nil {
		t.Error("a run of another kernel is reused")
	}

	target := create(t, root, store.Options{Now: stamp.Now, ID: "new"})
	run := *old
	run.Index = 7
	if err := target.Import(d, old, &run); err != nil {
		t.Fatal(err)
	}
	got, err := target.Runs()
	if err != nil || len(got) != 1 || got[0].Index != 7 || got[0].Files[0].SHA256 != old.Files[0].SHA256 {
		t.Fatalf("imported = %v, %v", got, err)
	}
	n := 0
	for s, err := range target.Samples(got[0]) {
		if err != nil || s.Value != 2 {
			t.Errorf("sample %v, %v", s, err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("%d samples, want 1", n)
	}
}
