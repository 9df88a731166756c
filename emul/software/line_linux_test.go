package software

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestHeapOrdersByDueThenArrival(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var l line
	type key struct {
		due int64
		seq slot
	}
	var want []key
	for i := range 5000 {
		due := r.Int64N(500)
		l.push(run{due: due, packet: slot(i)}, false)
		want = append(want, key{due, slot(i)})
		if r.IntN(3) == 0 { // interleave removals
			slices.SortStableFunc(want, func(a, b key) int { return int(a.due - b.due) })
			if f := l.front(); f.due != want[0].due || f.packet != want[0].seq {
				t.Fatalf("front is %+v, want %+v", f, want[0])
			}
			l.pop()
			want = want[1:]
		}
	}
	slices.SortStableFunc(want, func(a, b key) int { return int(a.due - b.due) })
	for _, w := range want {
		if f := l.front(); f == nil || f.due != w.due || f.packet != w.seq {
			t.Fatalf("front is %+v, want %+v", f, w)
		}
		l.pop()
	}
	if l.front() != nil {
		t.Error("something is left")
	}
}

func TestRingGrows(t *testing.T) {
	var l line
	next, got := slot(0), slot(0)
	for round := range 200 {
		for range round {
			l.push(run{due: int64(next), packet: next}, true)
			next++
		}
		for range round * 2 / 3 {
			if f := l.front(); f.packet != got {
				t.Fatalf("front is %d, want %d", f.packet, got)
			}
			l.pop()
			got++
		}
	}
	for ; l.front() != nil; got++ {
		l.pop()
	}
	if got != next {
		t.Errorf("%d came out of %d", got, next)
	}
}

// A line that changed from order to none gives both kinds by due time.
func TestLineMixes(t *testing.T) {
	var l line
	l.push(run{due: 5}, true)
	l.push(run{due: 9}, true)
	l.push(run{due: 7}, false)
	l.push(run{due: 3}, false)
	var got []int64
	for f := l.front(); f != nil; f = l.front() {
		got = append(got, f.due)
		l.pop()
	}
	if !slices.Equal(got, []int64{3, 5, 7, 9}) {
		t.Errorf("came out as %v", got)
	}
}

func TestAgenda(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var a agenda
	all := make([]*direction, 100)
	for i := range all {
		all[i] = &direction{place: -1}
	}
	for range 20000 {
		d := all[r.IntN(len(all))]
		if r.IntN(2) == 0 || d.line.front() == nil {
			due := int64(0)
			if !d.line.ring.empty() {
				due = d.line.ring.runs[(d.line.ring.tail-1)&uint64(len(d.line.ring.runs)-1)].due
			}
			d.line.push(run{due: due + r.Int64N(1000)}, true)
		} else {
			d.line.pop()
		}
		a.update(d)
		var want *direction
		for _, x := range all {
			if f := x.line.front(); f != nil && (want == nil || f.due < want.line.front().due) {
				want = x
			}
		}
		got := a.next()
		if (got == nil) != (want == nil) || got != nil && got.next != want.line.front().due {
			t.Fatalf("next is %+v, want %+v", got, want)
		}
	}
}

func BenchmarkLine(b *testing.B) {
	for _, ordered := range []bool{true, false} {
		name := "heap"
		if ordered {
			name = "ring"
		}
		b.Run(name, func(b *testing.B) {
			var l line
			r := rand.New(rand.NewPCG(1, 2))
			at := int64(0)
			for range 1000 {
				at++
				l.push(run{due: at + r.Int64N(1000)}, ordered)
			}
			for b.Loop() {
				at++
				l.push(run{due: at + r.Int64N(1000)}, ordered)
				l.pop()
			}
		})
	}
}
