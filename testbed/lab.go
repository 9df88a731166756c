package testbed

import "time"

// Lab describes a live lab: the file lab.json in the directory of its run.
type Lab struct {
	ID       string    `json:"id"` // of the run
	Title    string    `json:"title"`
	Created  time.Time `json:"created"`
	Owner    int       `json:"owner"`       // process id
	OwnerAge uint64    `json:"owner_start"` // clock ticks since boot
	Nodes    []LabNode `json:"nodes"`
	Links    []LabLink `json:"links"`

	dir string // of all runs
}

// LabNode is a node of a live lab.
type LabNode struct {
	Name      string   `json:"name"`
	Kind      NodeKind `json:"kind"`
	Namespace string   `json:"namespace"` // path, for nsenter --net=PATH
	Addresses []string `json:"addresses,omitempty"`
}

// LabLink is a link of a live lab.
type LabLink struct {
	Name    string `json:"name"`
	A       string `json:"a"`
	B       string `json:"b"`
	Forward string `json:"forward"` // impairment, in words
	Reverse string `json:"reverse"`
}
