package store

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/parquet-go/parquet-go"

	"wirelab/results"
)

// Samples reads the samples of a run in the order they were recorded. The
// sequence ends at the first error, which it yields.
func (d *Dir) Samples(run *results.Run) iter.Seq2[results.Sample, error] {
	return readSamples(filepath.Join(d.runPath(run), SamplesName))
}

func readSamples(path string) iter.Seq2[results.Sample, error] {
	return func(yield func(results.Sample, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(results.Sample{}, fmt.Errorf("read samples: %w", err))
			return
		}
		defer f.Close()
		if err := eachSample(f, func(s results.Sample) bool { return yield(s, nil) }); err != nil {
			yield(results.Sample{}, fmt.Errorf("read %s: broken or truncated: %w", path, err))
		}
	}
}

// guard turns the panics of the decoder on damaged files into errors. It must
// not run the consumer's code, whose panics are its own.
func guard(step func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("not readable: %v", p)
		}
	}()
	return step()
}

// eachSample calls use for every row until it returns false. It walks the
// columns side by side and keeps one string per name, so that millions of rows
// cost no allocation each.
func eachSample(f *os.File, use func(results.Sample) bool) error {
	var file *parquet.File
	err := guard(func() error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		file, err = parquet.OpenFile(f, info.Size())
		return err
	})
	if err != nil {
		return err
	}
	names := map[string]string{}
	for _, group := range file.RowGroups() {
		more, err := eachOfGroup(file, group, names, use)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// eachOfGroup walks one row group; more is false when use wants no more.
func eachOfGroup(file *parquet.File, group parquet.RowGroup, names map[string]string, use func(results.Sample) bool) (more bool, err error) {
	actor, metric := &column{name: "actor"}, &column{name: "metric"}
	flow, time, value := &column{name: "flow"}, &column{name: "time_s"}, &column{name: "value"}
	all := []*column{actor, metric, flow, time, value}
	defer func() {
		for _, c := range all {
			c.close()
		}
	}()
	for _, c := range all {
		if err := c.open(file, group); err != nil {
			return false, err
		}
	}
	for left := group.NumRows(); left > 0; {
		n := left
		for _, c := range all {
			if err := c.fill(names); err != nil {
				return false, err
			}
			n = min(n, int64(len(c.batch)-c.at))
		}
		for range n {
			s := results.Sample{Actor: actor.text(), Metric: metric.text(), Flow: flow.next().Int32(), Time: time.next().Double(), Value: value.next().Double()}
			if !use(s) {
				return false, nil
			}
		}
		left -= n
	}
	return true, nil
}

// column reads one column of a row group in batches.
type column struct {
	name   string
	values parquet.ColumnChunkValueReader
	buffer []parquet.Value
	batch  []parquet.Value // what was read last
	texts  []string        // of the batch, for columns of text
	at     int             // the next value of the batch
}

// kinds are what the columns must hold.
var kinds = map[string]parquet.Kind{
	"actor": parquet.ByteArray, "metric": parquet.ByteArray, "flow": parquet.Int32, "time_s": parquet.Double, "value": parquet.Double,
}

func (c *column) open(file *parquet.File, group parquet.RowGroup) error {
	return guard(func() error {
		leaf := file.Root().Column(c.name)
		if leaf == nil || !leaf.Leaf() || leaf.Type().Kind() != kinds[c.name] {
			return fmt.Errorf("it has no column %s of the right type", c.name)
		}
		c.values = parquet.NewColumnChunkValueReader(group.ColumnChunks()[leaf.Index()])
		c.buffer = make([]parquet.Value, 2048)
		return nil
	})
}

// fill reads the next batch when the last one is used up. Texts are taken out
// at once: the decoder uses their memory again.
func (c *column) fill(names map[string]string) error {
	if c.at < len(c.batch) {
		return nil
	}
	return guard(func() error {
		n, err := c.values.ReadValues(c.buffer)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				return fmt.Errorf("column %s ends early", c.name)
			}
			return err
		}
		c.batch, c.at = c.buffer[:n], 0
		if kinds[c.name] != parquet.ByteArray {
			return nil
		}
		c.texts = c.texts[:0]
		for _, v := range c.batch {
			b := v.ByteArray()
			name, ok := names[string(b)] // no allocation
			if !ok {
				name = string(b)
				names[name] = name
			}
			c.texts = append(c.texts, name)
		}
		return nil
	})
}

func (c *column) next() parquet.Value {
	c.at++
	return c.batch[c.at-1]
}

func (c *column) text() string {
	c.at++
	return c.texts[c.at-1]
}

func (c *column) close() {
	if c.values != nil {
		_ = guard(c.values.Close)
	}
}
