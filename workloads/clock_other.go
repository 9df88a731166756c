//go:build !linux

package workloads

import "time"

// processStart stands in for CLOCK_MONOTONIC where only one process needs it.
var processStart = time.Now()

func monotonicNS() int64 { return int64(time.Since(processStart)) + 1 }

func sleepMonotonic(ns int64) { time.Sleep(time.Duration(ns - monotonicNS())) }

// ThreadCPU is not known on this system.
func ThreadCPU() int64 { return 0 }

func noTimerSlack() {}
