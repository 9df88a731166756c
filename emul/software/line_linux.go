package software

// run is a number of consecutive segments of one packet that are due at one
// time.
type run struct {
	due    int64
	packet slot
	first  uint16
	count  uint16
}

// ring is a first-in first-out queue of runs whose length is a power of two.
type ring struct {
	runs       []run
	head, tail uint64
}

func (r *ring) empty() bool { return r.head == r.tail }
func (r *ring) front() *run { return &r.runs[r.head&uint64(len(r.runs)-1)] }
func (r *ring) pop()        { r.head++ }
func (r *ring) len() int    { return int(r.tail - r.head) }

func (r *ring) push(x run) {
	if r.len() == len(r.runs) {
		bigger := make([]run, max(64, 2*len(r.runs)))
		n := 0
		for ; !r.empty(); n++ {
			bigger[n] = *r.front()
			r.pop()
		}
		r.runs, r.head, r.tail = bigger, 0, uint64(n)
	}
	r.runs[r.tail&uint64(len(r.runs)-1)] = x
	r.tail++
}

// heap orders runs by due time, equal ones by arrival. Four children per node
// halve the depth and share a cache line.
type heap struct {
	items []heapItem
	seq   uint64
}

type heapItem struct {
	run
	seq uint64
}

func (a *heapItem) before(b *heapItem) bool {
	return a.due < b.due || a.due == b.due && a.seq < b.seq
}

func (h *heap) push(x run) {
	h.seq++
	h.items = append(h.items, heapItem{x, h.seq})
	i := len(h.items) - 1
	item := h.items[i]
	for i > 0 {
		parent := (i - 1) / 4
		if !item.before(&h.items[parent]) {
			break
		}
		h.items[i] = h.items[parent]
		i = parent
	}
	h.items[i] = item
}

func (h *heap) pop() {
	n := len(h.items) - 1
	item := h.items[n]
	h.items = h.items[:n]
	if n == 0 {
		return
	}
	i := 0
	for {
		least := 4*i + 1
		if least >= n {
			break
		}
		for c := least + 1; c < min(4*i+5, n); c++ {
			if h.items[c].before(&h.items[least]) {
				least = c
			}
		}
		if !h.items[least].before(&item) {
			break
		}
		h.items[i] = h.items[least]
		i = least
	}
	h.items[i] = item
}

// line is the delay line of one direction: a ring while order is kept, a heap
// for what jitter may reorder.
type line struct {
	ring ring
	heap heap
}

// front is the run due first, nil if there is none.
func (l *line) front() *run {
	switch {
	case len(l.heap.items) == 0:
		if l.ring.empty() {
			return nil
		}
		return l.ring.front()
	case l.ring.empty() || l.heap.items[0].due < l.ring.front().due:
		return &l.heap.items[0].run
	}
	return l.ring.front()
}

// pop removes the run that front returned.
func (l *line) pop() {
	if len(l.heap.items) == 0 || !l.ring.empty() && l.heap.items[0].due >= l.ring.front().due {
		l.ring.pop()
		return
	}
	l.heap.pop()
}

func (l *line) push(x run, ordered bool) {
	if ordered {
		l.ring.push(x)
		return
	}
	l.heap.push(x)
}

// agenda is a heap of the directions that hold something, by the due time of
// their first run.
type agenda struct{ items []*direction }

func (a *agenda) next() *direction {
	if len(a.items) == 0 {
		return nil
	}
	return a.items[0]
}

// update puts d where its first run belongs, or removes it.
func (a *agenda) update(d *direction) {
	front := d.line.front()
	switch {
	case front == nil && d.place < 0:
		return
	case front == nil:
		a.remove(d)
		return
	case d.place < 0:
		d.place = len(a.items)
		a.items = append(a.items, d)
	}
	d.next = front.due
	a.up(d.place)
	a.down(d.place)
}

func (a *agenda) remove(d *direction) {
	i, n := d.place, len(a.items)-1
	last := a.items[n]
	a.items[n] = nil
	a.items = a.items[:n]
	d.place = -1
	if i < n {
		a.items[i], last.place = last, i
		a.up(i)
		a.down(last.place)
	}
}

func (a *agenda) up(i int) {
	for i > 0 {
		parent := (i - 1) / 4
		if a.items[i].next >= a.items[parent].next {
			return
		}
		a.swap(i, parent)
		i = parent
	}
}

func (a *agenda) down(i int) {
	for {
		least := i
		for c := 4*i + 1; c < min(4*i+5, len(a.items)); c++ {
			if a.items[c].next < a.items[least].next {
				least = c
			}
		}
		if least == i {
			return
		}
		a.swap(i, least)
		i = least
	}
}

func (a *agenda) swap(i, j int) {
	a.items[i], a.items[j] = a.items[j], a.items[i]
	a.items[i].place, a.items[j].place = i, j
}
