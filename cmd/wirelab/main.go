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
	// The first signal cancels the context, which cleans up; a second one ends
	// the process at once, and `wirelab clean` finishes the work.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Run(ctx, os.Args[1:], Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
}
