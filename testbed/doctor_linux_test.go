package testbed

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestDoctor(t *testing.T) {
	before := deviceNames(t)
	found := map[string]Finding{}
	for _, f := range Doctor(t.Context()) {
		t.Logf("%+v", f)
		if f.Name == "" || f.Detail == "" {
			t.Errorf("finding %+v is not complete", f)
		}
		if !f.OK && f.Needed && f.Remedy == "" {
			t.Errorf("%s is needed and there is no remedy", f.Name)
		}
		if _, twice := found[f.Name]; twice {
			t.Errorf("%s is told twice", f.Name)
		}
		found[f.Name] = f
	}
	if got, want := found["root"].OK, os.Geteuid() == 0; got != want {
		t.Errorf("root is %v, want %v", got, want)
	}
	if os.Geteuid() == 0 {
		// If testbeds come up here, what they need is there.
		tb := bringUp(t, chainOf(3))
		for name, f := range found {
			if f.Needed && !f.OK {
				t.Errorf("%s is needed and said to be missing (%s), yet a testbed came up", name, f.Detail)
			}
		}
		everyPair(t, tb)
	}
	// Everything was tried elsewhere.
	for _, name := range deviceNames(t) {
		// Others may make devices meanwhile, of other names.
		if strings.HasPrefix(name, "probe") && !slices.Contains(before, name) {
			t.Errorf("the host has a new device %s", name)
		}
	}
}

// deviceNames lists the devices of the host.
func deviceNames(t *testing.T) []string {
	t.Helper()
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(links))
	for i, l := range links {
		names[i] = l.Attrs().Name
	}
	return names
}

func TestDoctorStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if list := Doctor(ctx); slices.ContainsFunc(list, func(f Finding) bool { return f.Name == "timers" }) {
		t.Errorf("it went on: %+v", list)
	}
}

func TestDistro(t *testing.T) {
	for text, want := range map[string]string{
		"ID=debian\n":                                  "linux-image-amd64",
		"ID=ubuntu\nID_LIKE=debian\n":                  "linux-modules-extra",
		"NAME=x\nID=mint\nID_LIKE=\"ubuntu debian\"":   "linux-modules-extra",
		"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"": "kernel-modules-extra",
		"ID=alpine": "linux-lts",
		"ID=arch":   "reboot",
		"":          "modprobe sch_netem",
	} {
		if got := parseDistro(text).hint("sch_netem"); !strings.Contains(got, want) {
			t.Errorf("%q: hint %q, want %q in it", text, got, want)
		}
	}
	if got := (distro{wsl: true, id: "ubuntu"}).hint("sch_netem"); !strings.Contains(got, "WSL") {
		t.Errorf("hint %q", got)
	}
}
