package software

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"wirelab/emul"
	"wirelab/emul/hist"
)

// The control protocol between parent and child, over a Unix stream socket: a
// message is its kind (one byte), its length (four bytes, little endian) and
// its body. The parent first sends a spec, then the sockets of all cables (see
// socketsPerCable) as ancillary data of single bytes, then one request at a
// time; the child answers each with the same kind or with kindError.
type kind byte

const (
	kindSpec     kind = 'S' // JSON spec; answered by kindReady with JSON ready
	kindReady    kind = 'R'
	kindArm      kind = 'A'
	kindCounters kind = 'C' // binary snapshot
	kindDetailed kind = 'D' // binary snapshot with histograms
	kindUpdate   kind = 'U' // JSON update
	kindQuit     kind = 'Q' // answered when the event logs are complete
	kindError    kind = 'E' // text
)

// maxMessage bounds a body: 1000 links with full histograms are 60 MB.
const maxMessage = 1 << 28

// fdsPerMessage is below the kernel's limit of 253 (SCM_MAX_FD).
const fdsPerMessage = 200

// spec is what the child needs to know.
type spec struct {
	Workers   int     `json:"workers"`
	Cores     []int   `json:"cores"`
	QuantumNS int64   `json:"quantum_ns"`
	Memory    int64   `json:"memory"`
	Cables    []cable `json:"cables"`
}

// cable is emul.Cable without its ports.
type cable struct {
	Name     string          `json:"name"`
	MTU      int             `json:"mtu"`
	Forward  emul.Impairment `json:"forward"`
	Reverse  emul.Impairment `json:"reverse"`
	Seed     uint64          `json:"seed"`
	Precise  bool            `json:"precise"`
	EventLog string          `json:"event_log,omitempty"`
}

// update changes one direction of one cable.
type update struct {
	Cable      int             `json:"cable"`
	Direction  int             `json:"direction"`
	Impairment emul.Impairment `json:"impairment"`
}

// ready is the child's report that packets cross.
type ready struct {
	Workers []Scheduling `json:"workers"`
}

func writeMessage(w io.Writer, k kind, body []byte) error {
	head := make([]byte, 5, 5+len(body))
	head[0] = byte(k)
	binary.LittleEndian.PutUint32(head[1:], uint32(len(body)))
	_, err := w.Write(append(head, body...))
	return err
}

func writeJSON(w io.Writer, k kind, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeMessage(w, k, body)
}

func readMessage(r io.Reader) (kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > maxMessage {
		return 0, nil, fmt.Errorf("control message of %d bytes is too long", n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, err
	}
	return kind(head[0]), body, nil
}

// reading is what one direction shows at one instant.
type reading struct {
	counters
	backlogPackets, backlogBytes int64
	logLost                      uint64
	errors                       *hist.Histogram // nil unless asked for
}

func (r *reading) fields() []*uint64 {
	return []*uint64{
		&r.packetsIn, &r.bytesIn, &r.packetsOut, &r.bytesOut,
		&r.queueDrops, &r.lossDrops, &r.overloadDrops, &r.deadlineMisses, &r.logLost,
	}
}

func (r *reading) append(b []byte) []byte {
	for _, f := range r.fields() {
		b = binary.AppendUvarint(b, *f)
	}
	b = binary.AppendVarint(b, r.backlogPackets)
	b = binary.AppendVarint(b, r.backlogBytes)
	if r.errors != nil {
		b = r.errors.AppendBinary(b)
	}
	return b
}

var errShort = errors.New("snapshot ends too early")

func (r *reading) decode(b []byte, detailed bool) ([]byte, error) {
	for _, f := range r.fields() {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errShort
		}
		*f, b = v, b[n:]
	}
	for _, f := range []*int64{&r.backlogPackets, &r.backlogBytes} {
		v, n := binary.Varint(b)
		if n <= 0 {
			return nil, errShort
		}
		*f, b = v, b[n:]
	}
	if !detailed {
		return b, nil
	}
	r.errors = &hist.Histogram{}
	return r.errors.DecodeBinary(b)
}

// export turns the reading into the public form.
func (r *reading) export() emul.DirectionCounters {
	return emul.DirectionCounters{
		PacketsIn: r.packetsIn, BytesIn: r.bytesIn,
		PacketsOut: r.packetsOut, BytesOut: r.bytesOut,
		QueueDrops: r.queueDrops, LossDrops: r.lossDrops, OverloadDrops: r.overloadDrops,
		BacklogBytes: r.backlogBytes, BacklogPackets: r.backlogPackets,
		DeadlineMisses: r.deadlineMisses, DepartureError: r.errors,
	}
}

// snapshotHead precedes the readings, forward and reverse of each cable.
type snapshotHead struct {
	timeNS, cpuNS int64
	wakeups       uint64
}

func (h *snapshotHead) append(b []byte) []byte {
	b = binary.AppendVarint(b, h.timeNS)
	b = binary.AppendVarint(b, h.cpuNS)
	return binary.AppendUvarint(b, h.wakeups)
}

// decodeSnapshot reads the snapshot of the named cables.
func decodeSnapshot(b []byte, names []string, detailed bool) (emul.Snapshot, error) {
	var s emul.Snapshot
	for _, f := range []*int64{&s.TimeNS, &s.CPUNS} {
		v, n := binary.Varint(b)
		if n <= 0 {
			return s, errShort
		}
		*f, b = v, b[n:]
	}
	wakeups, n := binary.Uvarint(b)
	if n <= 0 {
		return s, errShort
	}
	s.Wakeups, b = wakeups, b[n:]
	s.Links = make([]emul.LinkCounters, len(names))
	for i := range s.Links {
		l := &s.Links[i]
		l.Name = names[i]
		for _, d := range []*emul.DirectionCounters{&l.Forward, &l.Reverse} {
			var r reading
			var err error
			if b, err = r.decode(b, detailed); err != nil {
				return s, err
			}
			*d = r.export()
			l.EventLogLost += r.logLost
		}
	}
	return s, nil
}
