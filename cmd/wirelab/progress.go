package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"wirelab/experiments"
	"wirelab/results"
)

// progress tells a person what a run does: a line that redraws on a terminal,
// one line per phase elsewhere. It implements runner.Progress.
type progress struct {
	w     io.Writer
	width int // 0: not a terminal

	mu       sync.Mutex // guards all below
	total    int
	done     int
	started  time.Time
	spent    time.Duration // in finished runs
	estimate time.Duration // of one run, before any has finished
	phase    string
	current  string
	stop     chan struct{}
	stopped  chan struct{}
}

func newProgress(w io.Writer, total int, estimate time.Duration) *progress {
	width, _ := terminal(w)
	if os.Getenv("TERM") == "dumb" {
		width = 0 // it cannot redraw
	}
	p := &progress{w: w, width: width, total: total, estimate: estimate, started: time.Now(),
		stop: make(chan struct{}), stopped: make(chan struct{})}
	go p.redraw()
	return p
}

// redraw keeps the time left moving on a terminal.
func (p *progress) redraw() {
	defer close(p.stopped)
	if p.width == 0 {
		return
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		}
	}
}

// draw writes the status line; p.mu is held.
func (p *progress) draw() {
	if p.width == 0 {
		return
	}
	const cells = 20
	filled := 0
	if p.total > 0 {
		filled = cells * p.done / p.total
	}
	line := fmt.Sprintf("%s%s %d/%d  %s  %s  %s left", strings.Repeat("█", filled), strings.Repeat("░", cells-filled),
		p.done, p.total, p.current, p.phase, p.left().Round(time.Second))
	runes := []rune(line)
	if len(runes) >= p.width {
		runes = runes[:p.width-1]
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", string(runes))
}

// left estimates the time left from the runs made so far.
func (p *progress) left() time.Duration {
	per := p.estimate
	if p.done > 0 {
		per = p.spent / time.Duration(p.done)
	}
	return max(per*time.Duration(p.total)-time.Since(p.started), 0)
}

func (p *progress) say(format string, args ...any) {
	if p.width > 0 {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	fmt.Fprintln(p.w, results.Printable(fmt.Sprintf(format, args...)))
	p.draw()
}

// Note prints a line of its own.
func (p *progress) Note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say(format, args...)
}

// RunStarted says which run begins.
func (p *progress) RunStarted(point experiments.Point, repetition, attempt int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = fmt.Sprintf("%s repetition %d", point.ID, repetition)
	if attempt > 1 {
		p.current += fmt.Sprintf(" (attempt %d)", attempt)
	}
	p.phase = "start"
	p.draw()
}

// Phase says what the current run does.
func (p *progress) Phase(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.phase = name
	if p.width == 0 {
		fmt.Fprintf(p.w, "%d of %d     %s  %s\n", p.done+1, p.total, p.current, name)
	}
	p.draw()
}

// RunAgain says why an attempt does not count.
func (p *progress) RunAgain(run *results.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say("again       %s repetition %d  %s  invalid: %s", run.Point.ID, run.Repetition,
		run.Duration.Round(100*time.Millisecond), strings.Join(run.Reasons, "; "))
}

// RunDone says how a run ended.
func (p *progress) RunDone(run *results.Run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.spent = time.Since(p.started)
	verdict := "valid"
	switch {
	case run.Reused != "":
		verdict = "taken from " + run.Reused
	case run.Status != results.StatusOK && run.Status != results.StatusPartial:
		verdict = string(run.Status) + ": " + firstLine(run.Error)
	case !run.Valid:
		verdict = "invalid: " + strings.Join(run.Reasons, "; ")
	}
	p.say("%d of %d     run %d  %s repetition %d  %s  %s", p.done, p.total, run.Index, run.Point.ID, run.Repetition,
		run.Duration.Round(100*time.Millisecond), verdict)
}

// Close ends the status line.
func (p *progress) Close() {
	close(p.stop)
	<-p.stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.width > 0 {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
