package software

import (
	"bytes"
	"testing"

	"wirelab/emul/hist"
)

func TestSnapshotsCross(t *testing.T) {
	h := &hist.Histogram{}
	h.RecordN(12345, 7)
	fwd := reading{counters: counters{1, 2, 3, 4, 5, 6, 7, 8}, backlogPackets: 9, backlogBytes: 10, logLost: 11, errors: h}
	rev := reading{counters: counters{packetsIn: 1 << 63}, errors: &hist.Histogram{}}
	b := (&snapshotHead{timeNS: 100, cpuNS: 200, wakeups: 300}).append(nil)
	b = rev.append(fwd.append(b))
	s, err := decodeSnapshot(b, []string{"x"}, true)
	if err != nil {
		t.Fatal(err)
	}
	l := s.Links[0]
	if s.TimeNS != 100 || s.CPUNS != 200 || s.Wakeups != 300 || l.Name != "x" || l.EventLogLost != 11 {
		t.Errorf("%+v", s)
	}
	f := l.Forward
	if f.PacketsIn != 1 || f.BytesIn != 2 || f.PacketsOut != 3 || f.BytesOut != 4 || f.QueueDrops != 5 || f.LossDrops != 6 ||
		f.OverloadDrops != 7 || f.DeadlineMisses != 8 || f.BacklogPackets != 9 || f.BacklogBytes != 10 || f.DepartureError.Count() != 7 {
		t.Errorf("%+v", f)
	}
	if l.Reverse.PacketsIn != 1<<63 {
		t.Errorf("%+v", l.Reverse)
	}
	for n := range b {
		if _, err := decodeSnapshot(b[:n], []string{"x"}, true); err == nil {
			t.Errorf("the first %d bytes of %d are taken for a snapshot", n, len(b))
		}
	}
}

func TestMessages(t *testing.T) {
	var buf bytes.Buffer
	for _, body := range []string{"", "x", string(make([]byte, 100000))} {
		if err := writeMessage(&buf, kindArm, []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int{0, 1, 100000} {
		k, body, err := readMessage(&buf)
		if err != nil || k != kindArm || len(body) != want {
			t.Errorf("%q, %d bytes, %v, want %d", k, len(body), err, want)
		}
	}
	if _, _, err := readMessage(bytes.NewReader([]byte{'A', 255, 255, 255, 255})); err == nil {
		t.Error("a message of 4 GB is read")
	}
}
