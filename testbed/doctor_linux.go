package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"wirelab/testbed/journal"
	"wirelab/testbed/netns"
)

// Doctor finds out what this host can do, by trying it in a throw-away
// namespace: no module list or version number says whether a container, a cloud
// kernel or a security policy lets it happen. Other people's namespaces are
// listed and never touched. Without root it says what root would give.
func Doctor(ctx context.Context) []Finding {
	d := &doctor{distro: distribution()}
	d.host()
	space := d.space()
	if space != nil {
		defer space.Close()
		for _, probe := range spaceProbes {
			if ctx.Err() != nil {
				break
			}
			d.try(space, probe)
		}
	}
	for _, probe := range []func(){d.scheduling, d.timers, d.perf, d.congestion, d.namespaces, d.leftovers} {
		if ctx.Err() == nil {
			probe()
		}
	}
	return d.findings
}

// doctor collects findings.
type doctor struct {
	distro   distro
	findings []Finding
}

func (d *doctor) add(f Finding) { d.findings = append(d.findings, f) }

// verdict adds a finding from an error: nil is OK.
func (d *doctor) verdict(name string, needed bool, err error, detail, remedy string) {
	f := Finding{Name: name, OK: err == nil, Detail: detail, Needed: needed}
	if err != nil {
		f.Detail, f.Remedy = err.Error(), remedy
	}
	d.add(f)
}

func (d *doctor) host() {
	var u unix.Utsname
	_ = unix.Uname(&u) // cannot fail
	release := unix.ByteSliceToString(u.Release[:])
	f := Finding{Name: "kernel", OK: kernelAtLeast(5, 4), Detail: "Linux " + release, Needed: true}
	if !f.OK {
		f.Remedy = "Linux 5.4 or later is needed."
	}
	d.add(f)
	var err error
	if os.Geteuid() != 0 {
		err = fmt.Errorf("running as user %d", os.Geteuid())
	}
	d.verdict("root", true, err, "running as root",
		"Run with sudo: root may make namespaces and open packet sockets. Without it, files can be checked and planned, and reports made.")
}

// space makes the namespace in which things are tried, nil if that is not
// possible.
func (d *doctor) space() *netns.NS {
	n, err := netns.New(nil)
	remedy := "Run with sudo."
	if err != nil && os.Geteuid() == 0 {
		remedy = "This looks like a container: run it with CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW (docker run --privileged)."
	}
	d.verdict("network namespaces", true, err, "made one", remedy)
	return n
}

// spaceProbe tries one thing on a thread inside the throw-away namespace. It
// returns what it saw.
type spaceProbe struct {
	name   string
	needed bool
	module string // the kernel module that is missing if it fails
	remedy string // other than the module
	try    func() (string, error)
}

func (d *doctor) try(space *netns.NS, p spaceProbe) {
	var detail string
	err := space.Do(func() (err error) {
		detail, err = p.try()
		return err
	})
	remedy := p.remedy
	if p.module != "" && errors.Is(err, errAbsent) {
		remedy = strings.TrimSpace(d.distro.hint(p.module) + " " + p.remedy)
	}
	d.verdict(p.name, p.needed, err, detail, remedy)
}

// namespaces lists the namespaces of others.
func (d *doctor) namespaces() {
	var names []string
	for _, dir := range []string{"/run/netns", "/run/docker/netns"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // there are none
		}
		for _, e := range entries {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	own := namespaceInode(os.Getpid())
	inodes := map[uint64]bool{}
	list, err := findProcesses(func(pid int) bool { return true })
	for _, p := range list {
		if i := namespaceInode(p.pid); i != 0 && i != own {
			inodes[i] = true
		}
	}
	detail := "none"
	switch {
	case len(names) > 0:
		detail = fmt.Sprintf("%d with processes in them, %d with names (%s); they are left alone", len(inodes), len(names), someOf(names))
	case len(inodes) > 0:
		detail = fmt.Sprintf("%d with processes in them; they are left alone", len(inodes))
	}
	d.verdict("other namespaces", false, err, detail, "")
}

// leftovers looks for dead runs.
func (d *doctor) leftovers() {
	runs, err := journal.Runs(journal.DefaultDir)
	var dead, live []string
	for _, r := range runs {
		if journal.Live(journal.DefaultDir, r) {
			live = append(live, r)
		} else {
			dead = append(dead, r)
		}
	}
	detail := fmt.Sprintf("none; %d runs are alive", len(live))
	if err == nil && len(dead) > 0 {
		slices.Sort(dead)
		err = fmt.Errorf("runs that ended without cleaning up: %s", someOf(dead))
	}
	d.verdict("leftovers", false, err, detail, "wirelab clean removes them.")
}
