// Command wirelab builds networks, impairs them, drives them with real
// workloads, and leaves a report in which every claim stands beside what was
// measured.
//
// The rules of this command's output: data goes to stdout, errors and progress
// to stderr; progress redraws only on a terminal and is one line per phase
// otherwise; an error says what was tried and what to do next. main only exits:
// everything else is a function of context, arguments and streams, so that
// tests run it in process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(Main())
}

// Main runs the command with the process's own arguments and streams, and
// returns its exit status.
func Main() int {
	// Without this a reader of our output that goes away, such as head(1), would
	// end the process and leave its network; so the write fails instead. It is
	// caught rather than ignored, as only then programs that we start have the
	// default again.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	args := os.Args[1:]
	ctx := context.Background()
	if undoes(args) {
		// The first signal cancels the context, which cleans up; a second one ends
		// the process at once, and `wirelab clean` finishes the work.
		interrupts := []os.Signal{os.Interrupt, syscall.SIGTERM}
		if !signal.Ignored(syscall.SIGHUP) { // nohup(1) asks to go on
			interrupts = append(interrupts, syscall.SIGHUP)
		}
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, interrupts...)
		defer stop()
		context.AfterFunc(ctx, stop)
	}
	return Run(ctx, args, Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}

// undoes tells whether a verb must clean up when interrupted; the others end
// at once.
func undoes(args []string) bool {
	cmd, _, err := newRoot(Streams{}).Find(args)
	if err != nil {
		return false
	}
	switch cmd.Name() {
	case "run", "up", "down", "clean", "doctor", "actor", "forward", "lab", "node":
		return true
	}
	return false
}
