package store

import (
	"fmt"
	"os"

	"github.com/parquet-go/parquet-go"

	"wirelab/results"
)

// spillRows bounds the memory of a run's samples: 24 bytes a row. Below it
// nothing is encoded before Commit, so that the load runs undisturbed.
const spillRows = 1 << 20

// row is a line of samples.parquet. Its columns are the contract with readers.
type row struct {
	Run    int32   `parquet:"run"`
	Actor  string  `parquet:"actor,dict"`
	Flow   int32   `parquet:"flow"`
	Metric string  `parquet:"metric,dict"`
	Time   float64 `parquet:"time_s"`
	Value  float64 `parquet:"value"`
}

// sampleWriter keeps samples as columns with interned names and encodes them
// in chunks. It is not safe for concurrent use.
type sampleWriter struct {
	path string
	run  int32

	ids    map[string]uint32
	names  []string
	actor  []uint32
	metric []uint32
	flow   []int32
	time   []float64
	value  []float64

	file   *os.File
	pq     *parquet.GenericWriter[row]
	buffer []row
	err    error // the first one; nothing is written after it
}

func newSampleWriter(path string, run int) *sampleWriter {
	return &sampleWriter{path: path, run: int32(run), ids: map[string]uint32{}}
}

func (w *sampleWriter) add(s results.Sample) {
	if w.err != nil || !finite(s.Value) || !finite(s.Time) {
		return
	}
	w.actor = append(w.actor, w.intern(s.Actor))
	w.metric = append(w.metric, w.intern(s.Metric))
	w.flow = append(w.flow, s.Flow)
	w.time = append(w.time, s.Time)
	w.value = append(w.value, s.Value)
	if len(w.value) >= spillRows {
		w.spill()
	}
}

func (w *sampleWriter) intern(name string) uint32 {
	id, ok := w.ids[name]
	if !ok {
		id = uint32(len(w.names))
		w.names = append(w.names, name)
		w.ids[name] = id
	}
	return id
}

// spill encodes the buffered rows as one row group.
func (w *sampleWriter) spill() {
	if w.err = w.open(); w.err != nil {
		return
	}
	const chunk = 4096
	if w.buffer == nil {
		w.buffer = make([]row, 0, chunk)
	}
	for i := 0; i < len(w.value); {
		w.buffer = w.buffer[:0]
		for ; i < len(w.value) && len(w.buffer) < chunk; i++ {
			w.buffer = append(w.buffer, row{w.run, w.names[w.actor[i]], w.flow[i], w.names[w.metric[i]], w.time[i], w.value[i]})
		}
		if _, w.err = w.pq.Write(w.buffer); w.err != nil {
			return
		}
	}
	if w.err = w.pq.Flush(); w.err != nil {
		return
	}
	w.actor, w.metric, w.flow = w.actor[:0], w.metric[:0], w.flow[:0]
	w.time, w.value = w.time[:0], w.value[:0]
}

func (w *sampleWriter) open() error {
	if w.pq != nil {
		return nil
	}
	f, err := os.OpenFile(w.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	w.file = f
	w.pq = parquet.NewGenericWriter[row](f,
		parquet.Compression(&parquet.Zstd),
		parquet.CreatedBy("wirelab", "1", ""),
		parquet.KeyValueMetadata("wirelab.schema", "wirelab/samples/1"),
		parquet.KeyValueMetadata("wirelab.units", "time_s: seconds since the start of the load; value: the unit ends the metric's name"),
	)
	return nil
}

// close writes what is left, an empty table if there was nothing, and syncs.
func (w *sampleWriter) close() error {
	if w.err == nil {
		w.spill()
	}
	if w.err == nil {
		w.err = w.pq.Close()
	}
	if w.err == nil {
		w.err = w.file.Sync()
	}
	if w.file != nil {
		if err := w.file.Close(); w.err == nil {
			w.err = err
		}
		w.file = nil
	}
	if w.err != nil {
		return fmt.Errorf("write %s: %w", SamplesName, w.err)
	}
	return nil
}

func (w *sampleWriter) abort() {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}
