package testbed

import "fmt"

// chainOf has routers between two hosts, n nodes in all.
func chainOf(n int) Topology {
	t := Topology{Name: "chain"}
	for k := range n {
		kind := KindRouter
		if k == 0 || k == n-1 {
			kind = KindHost
		}
		t.Nodes = append(t.Nodes, Node{Name: fmt.Sprintf("n%d", k), Kind: kind})
		if k > 0 {
			t.Links = append(t.Links, Link{Name: fmt.Sprintf("l%d", k), A: fmt.Sprintf("n%d", k-1), B: fmt.Sprintf("n%d", k)})
		}
	}
	return t
}
