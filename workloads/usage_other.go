//go:build !linux

package workloads

func readThreads(int, map[int]int64) {}

func readTree(int, map[int]int64) {}

// Descendants is not known on this system.
func Descendants(int) []int { return nil }
