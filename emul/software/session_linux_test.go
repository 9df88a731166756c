package software_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/emul/software"
	"wirelab/emul/stage"
	"wirelab/emul/unit"
)

// event is a line of an event log.
type event struct {
	time      int64
	what      string
	cause     string
	direction string
	sequence  int64 // -1 for exempt packets
	length    int
	flow      string
}

func readEvents(t *testing.T, path string) []event {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	defer f.Close()
	var out []event
	sc := bufio.NewScanner(f)
	for first := true; sc.Scan(); first = false {
		fields := strings.Split(sc.Text(), ",")
		if len(fields) != 11 {
			t.Fatalf("event log: %q has %d fields", sc.Text(), len(fields))
		}
		if first {
			continue
		}
		e := event{what: fields[1], cause: fields[2], direction: fields[3], sequence: -1, flow: strings.Join(fields[6:], " ")}
		e.time, err = strconv.ParseInt(fields[0], 10, 64)
		check(t, err)
		if fields[4] != "" {
			e.sequence, err = strconv.ParseInt(fields[4], 10, 64)
			check(t, err)
		}
		e.length, _ = strconv.Atoi(fields[5])
		out = append(out, e)
	}
	check(t, sc.Err())
	return out
}

// lossList runs TCP over a lossy link and returns which segments were lost
// among the first n.
func lossList(t *testing.T, seed uint64, n int64) []int64 {
	t.Helper()
	l := newLab(t, 1500)
	c := l.cable(emul.Impairment{Rate: 200e6, Delay: time.Millisecond, Loss: 0.01, Queue: unit.Limit{Packets: 1000}}, emul.Impairment{})
	c.EventLog, c.Seed = filepath.Join(t.TempDir(), "events.csv"), seed
	l.join(t, c)
	check(t, l.session.Arm())
	from, to := l.tcp(t, false, "reno")
	transfer(t, from, to, 4<<20)
	got := conserved(t, l)
	check(t, l.session.Close())
	if got.EventLogLost != 0 {
		t.Fatalf("%d lines of the event log are lost", got.EventLogLost)
	}
	var out []int64
	lost, in, armed := uint64(0), uint64(0), false
	for _, e := range readEvents(t, c.EventLog) {
		switch {
		case e.direction != "forward":
		case e.what == "arm":
			armed, lost, in, out = true, 0, 0, nil
		case e.what == "enqueue":
			in++
		case e.what == "drop" && e.cause == "loss":
			lost++
			if e.sequence < n {
				out = append(out, e.sequence)
			}
		}
	}
	// The end of the connection may go on after the counters were read.
	if !armed || lost < got.Forward.LossDrops || in < got.Forward.PacketsIn || in > got.Forward.PacketsIn+20 {
		t.Errorf("the event log has %d losses of %d packets, the counters %+v", lost, in, got.Forward)
	}
	return out
}

// The same seed loses the same segments, by index, however the traffic falls
// into trains; and they are those that the stages alone lose.
func TestSameSeedSameLosses(t *testing.T) {
	const n = 2500
	first, second := lossList(t, 42, n), lossList(t, 42, n)
	if len(first) == 0 || !slices.Equal(first, second) {
		t.Errorf("the same seed lost %v and %v", first, second)
	}
	var want []int64
	b := stage.NewBernoulli(stage.NewStream(42, "link", "forward", "loss"), 0.01)
	for i := range int64(n) {
		if b.Drop(uint64(i)) {
			want = append(want, i)
		}
	}
	if !slices.Equal(first, want) {
		t.Errorf("lost %v, the stages alone lose %v", first, want)
	}
	if slices.Equal(first, lossList(t, 43, n)) {
		t.Error("another seed loses the same")
	}
}

func TestDelay(t *testing.T) {
	for _, mode := range []emul.Mode{emul.ModeDefault, emul.ModePrecise} {
		l := newLab(t, 1500)
		c := l.cable(emul.Impairment{Delay: 10 * time.Millisecond}, emul.Impairment{Delay: 5 * time.Millisecond})
		c.Mode = mode
		l.join(t, c)
		check(t, l.session.Arm())
		from, to := l.a.udp(t, false), l.b.udp(t, false)
		for range 20 {
			sent := time.Now()
			_, err := from.WriteTo([]byte("there"), addrOf(to))
			check(t, err)
			check(t, to.SetReadDeadline(time.Now().Add(20*time.Second)))
			_, peer, err := to.ReadFrom(make([]byte, 10))
			check(t, err)
			one := time.Since(sent)
			_, err = to.WriteTo([]byte("back"), peer)
			check(t, err)
			check(t, from.SetReadDeadline(time.Now().Add(20*time.Second)))
			_, _, err = from.ReadFrom(make([]byte, 10))
			check(t, err)
			if two := time.Since(sent); one < 10*time.Millisecond || two < 15*time.Millisecond {
				t.Errorf("arrived after %v, answered after %v; want at least 10 ms and 15 ms", one, two)
			}
		}
		s, err := l.session.Counters()
		check(t, err)
		w := l.session.(interface{ Scheduling() []software.Scheduling }).Scheduling()
		if len(w) != 1 || w[0].Core >= 0 && w[0].Core >= runtime.NumCPU() {
			t.Errorf("scheduling %+v", w)
		}
		f := s.Links[0].Forward
		if f.PacketsOut < 20 || f.DepartureError.Count() != f.PacketsOut || s.Wakeups == 0 || s.CPUNS == 0 || s.TimeNS == 0 {
			t.Errorf("counters %+v", s)
		}
	}
}

// The log of a link that only delays numbers each segment of a train, and
// address resolution has no number.
func TestEventLog(t *testing.T) {
	l := newLab(t, 1500)
	forget(t, l.a)
	c := l.cable(emul.Impairment{Delay: time.Millisecond}, emul.Impairment{})
	c.EventLog = filepath.Join(t.TempDir(), "events.csv")
	l.join(t, c)
	check(t, l.session.Arm())
	from, to := l.tcp(t, false, "cubic")
	transfer(t, from, to, 1<<20)
	got := conserved(t, l)
	check(t, l.session.Close())
	next, exempt := int64(-1), 0
	for _, e := range readEvents(t, c.EventLog) {
		switch {
		case e.direction != "forward":
		case e.what == "arm":
			next, exempt = 0, 0
		case e.what != "enqueue" || next < 0:
		case e.sequence < 0:
			exempt++
		default:
			if e.sequence != next || e.length > 1514 {
				t.Fatalf("%+v, want sequence %d", e, next)
			}
			next++
		}
	}
	if exempt == 0 || uint64(next)+uint64(exempt) != got.Forward.PacketsIn {
		t.Errorf("%d numbered and %d exempt segments of %d", next, exempt, got.Forward.PacketsIn)
	}
}

// Arm zeroes everything and turns loss on.
func TestArm(t *testing.T) {
	l := newLab(t, 1500)
	l.join(t, l.cable(emul.Impairment{Loss: 1}, emul.Impairment{}))
	from, to := l.a.udp(t, false), l.b.udp(t, false)
	_, err := from.WriteTo([]byte("x"), addrOf(to))
	check(t, err)
	check(t, to.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, _, err = to.ReadFrom(make([]byte, 10))
	check(t, err)
	check(t, l.session.Arm())
	_, err = from.WriteTo([]byte("xyz"), addrOf(to))
	check(t, err)
	eventually(t, "the loss", func() bool { return l.counters(t).Forward.LossDrops > 0 })
	c := l.counters(t).Forward
	if c.PacketsOut != 0 || c.DepartureError.Count() != 0 || c.PacketsIn != c.LossDrops || c.BytesIn == 0 {
		t.Errorf("after Arm: %+v", c)
	}
	light, err := l.session.(emul.Sampler).CountersLight()
	check(t, err)
	if d := light.Links[0].Forward; d.DepartureError != nil || d.LossDrops < c.LossDrops || light.Links[0].Name != "link" {
		t.Errorf("light counters %+v", d)
	}
}

// Queue drops and losses are told apart, and the backlog is seen.
func TestCountersAreSplit(t *testing.T) {
	l := newLab(t, 1500)
	l.join(t, l.cable(emul.Impairment{Rate: 1e6, Loss: 0.3, Queue: unit.Limit{Packets: 50}}, emul.Impairment{}))
	check(t, l.session.Arm())
	from, to := l.a.udp(t, false), l.b.udp(t, false)
	for range 200 {
		_, err := from.WriteTo(make([]byte, 500), addrOf(to))
		check(t, err)
	}
	eventually(t, "all to be offered", func() bool { return l.counters(t).Forward.PacketsIn >= 200 })
	if c := l.counters(t).Forward; c.BacklogPackets == 0 || c.BacklogPackets > 50 || c.BacklogBytes < c.BacklogPackets*64 {
		t.Errorf("backlog %d packets, %d bytes", c.BacklogPackets, c.BacklogBytes)
	}
	c := conserved(t, l).Forward
	if c.QueueDrops < 50 || c.LossDrops == 0 || c.LossDrops > 45 || c.OverloadDrops != 0 {
		t.Errorf("%+v", c)
	}
}

// A patch changes one thing and leaves the others.
func TestUpdate(t *testing.T) {
	l := newLab(t, 1500)
	imp := emul.Impairment{Delay: time.Millisecond}
	l.join(t, l.cable(imp, emul.Impairment{}))
	check(t, l.session.Arm())
	u := l.session.(emul.Updater)
	imp.Loss = 1
	check(t, u.Update("link", false, imp))
	imp.Delay = 2 * time.Millisecond
	check(t, u.Update("link", false, imp))
	from, to := l.a.udp(t, false), l.b.udp(t, false)
	_, err := from.WriteTo([]byte("x"), addrOf(to))
	check(t, err)
	eventually(t, "the loss set before the delay", func() bool { return l.counters(t).Forward.LossDrops > 0 })
	if err := u.Update("other", false, imp); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("an unknown link: %v", err)
	}
	imp.Rate = -1
	if err := u.Update("link", false, imp); err == nil {
		t.Error("a negative rate was taken")
	}
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// The death of the forwarding process is seen.
func TestDeathIsSeen(t *testing.T) {
	l := newLab(t, 1500)
	s, err := newBackend(l.log, nil).Join(t.Context(), []emul.Cable{l.cable(emul.Impairment{}, emul.Impairment{})})
	check(t, err)
	select {
	case <-s.Done():
		t.Fatalf("it is done at once: %v", s.Err())
	default:
	}
	check(t, unix.Kill(s.PID(), unix.SIGKILL))
	select {
	case <-s.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is seen of the death")
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the session says %v", err)
	}
	if _, err := s.Counters(); err == nil {
		t.Error("a dead process has counters")
	}
	check(t, s.Close())
}

func TestCloseEndsTheProcess(t *testing.T) {
	l := newLab(t, 1500)
	s, err := newBackend(l.log, nil).Join(t.Context(), []emul.Cable{l.cable(emul.Impairment{}, emul.Impairment{})})
	check(t, err)
	check(t, s.Close())
	if alive(s.PID()) {
		t.Error("the process lives on")
	}
	<-s.Done()
	if s.Err() != nil {
		t.Errorf("Close is no failure: %v", s.Err())
	}
	check(t, s.Close()) // twice does no harm
}

// orchestrate is run by TestMain in a process of its own: it joins and waits
// to be killed.
func orchestrate() {
	s, err := software.New(software.Options{Log: os.Stderr}).Join(context.Background(), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(s.PID())
	select {}
}

// The forwarding process dies with its parent, however that ends.
func TestDiesWithItsParent(t *testing.T) {
	cmd := exec.Command("/proc/self/exe", "orchestrate")
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	var pid int
	_, err = fmt.Fscan(out, &pid)
	check(t, err)
	if !alive(pid) {
		t.Fatal("there is no forwarding process")
	}
	check(t, cmd.Process.Kill())
	eventually(t, "the forwarding process to end", func() bool { return !alive(pid) })
}

func TestJoinFails(t *testing.T) {
	log := &syncBuffer{}
	for _, c := range []struct {
		name   string
		change func(*software.Options)
		want   string
	}{
		{"no such program", func(o *software.Options) { o.Binary = "/nonexistent/program" }, "/nonexistent/program"},
		{"it says why", func(o *software.Options) { o.Binary, o.Args = "/bin/sh", []string{"-c", "echo no luck today; exit 3"} }, "no luck today"},
		{"never ready", func(o *software.Options) {
			o.Binary, o.Args, o.ReadyTimeout = "/bin/sh", []string{"-c", "exec sleep 100"}, 200*time.Millisecond
		}, "not ready within 200ms"},
	} {
		_, err := newBackend(log, c.change).Join(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newBackend(log, nil).Join(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	bad := emul.Cable{Name: "x", Forward: emul.Impairment{AQM: "magic"}}
	var u *emul.UnsupportedError
	if _, err := newBackend(log, nil).Join(t.Context(), []emul.Cable{bad}); !errors.As(err, &u) || u.Field != "aqm" {
		t.Errorf("an unknown discipline: %v", err)
	}
}

// A thousand links fit one process.
func TestThousandLinks(t *testing.T) {
	needRoot(t)
	s := newSpace(t)
	lo, err := s.netlink.LinkByName("lo")
	check(t, err)
	check(t, s.netlink.LinkSetDown(lo))
	p := port{s, "lo", lo.Attrs().Index}
	cables := make([]emul.Cable, 1000)
	for i := range cables {
		imp := emul.Impairment{Rate: 1e6, Delay: time.Duration(i) * time.Microsecond}
		cables[i] = emul.Cable{Name: fmt.Sprint("l", i), Forward: imp, Reverse: imp, A: p, B: p}
	}
	joining := time.Now()
	session, err := newBackend(&syncBuffer{}, nil).Join(t.Context(), cables)
	check(t, err)
	t.Logf("joining 1000 links takes %v", time.Since(joining))
	defer session.Close()
	check(t, session.Arm())
	for range 3 {
		snap, err := session.Counters()
		check(t, err)
		if len(snap.Links) != 1000 || snap.Links[999].Name != "l999" {
			t.Fatalf("%d links", len(snap.Links))
		}
	}
	start := time.Now()
	const reads = 20
	for range reads {
		_, err := session.(emul.Sampler).CountersLight()
		check(t, err)
	}
	t.Logf("light counters of 1000 links take %v", time.Since(start)/reads)
	closing := time.Now()
	check(t, session.Close())
	t.Logf("closing 1000 links takes %v", time.Since(closing))
}

func TestSupports(t *testing.T) {
	b := software.New(software.Options{})
	for _, imp := range []emul.Impairment{
		{}, {Rate: 1}, {Rate: 100e9, Queue: unit.Limit{Packets: 5}, AQM: "droptail", Delay: time.Hour, Loss: 1},
		{Delay: time.Second, Jitter: time.Second, Distribution: "normal", JitterReorders: true},
	} {
		if err := b.Supports(imp); err != nil {
			t.Errorf("%+v: %v", imp, err)
		}
	}
	for field, imp := range map[string]emul.Impairment{
		"rate":         {Rate: 200e9},
		"queue":        {Queue: unit.Limit{Packets: 1, Bytes: 2}},
		"aqm":          {AQM: "codel"},
		"delay":        {Delay: -1},
		"jitter":       {Jitter: -1},
		"distribution": {Distribution: "pareto"},
		"loss":         {Loss: 1.5},
	} {
		var u *emul.UnsupportedError
		if err := b.Supports(imp); !errors.As(err, &u) || u.Field != field || u.Remedy == "" || u.Reason == "" {
			t.Errorf("%+v: %v, want a complaint about %s", imp, err, field)
		}
	}
}
