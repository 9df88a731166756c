package testbed

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"wirelab/testbed/journal"
)

// needRoot skips where namespaces cannot be made.
func needRoot(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root to make network namespaces")
	}
}

func testOptions(tb testing.TB) Options {
	tb.Helper()
	j, err := journal.Create(tb.TempDir()+"/wirelab", "test", "test")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := j.Remove(); err != nil {
			tb.Error(err)
		}
	})
	return Options{Journal: j, Log: tb.Logf}
}

// chain has routers between two hosts.
func chain(nodes int) Topology {
	t := Topology{Name: "chain"}
	for i := range nodes {
		kind := KindRouter
		if i == 0 || i == nodes-1 {
			kind = KindHost
		}
		t.Nodes = append(t.Nodes, Node{Name: fmt.Sprintf("n%d", i), Kind: kind})
		if i > 0 {
			t.Links = append(t.Links, Link{Name: fmt.Sprintf("l%d", i), A: fmt.Sprintf("n%d", i-1), B: fmt.Sprintf("n%d", i)})
		}
	}
	return t
}

func TestUpChain(t *testing.T) {
	needRoot(t)
	n := 200
	if os.Getenv("N") != "" {
		fmt.Sscan(os.Getenv("N"), &n)
	}
	t0 := time.Now()
	tb, err := Up(context.Background(), chain(n), testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t1 := time.Now()
	t.Log("up", t1.Sub(t0))
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
	t.Log("down", time.Since(t1))
}
