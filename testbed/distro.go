package testbed

import (
	"fmt"
	"os"
	"strings"
)

// distro is what /etc/os-release says (os-release(5)).
type distro struct {
	id, like string
	wsl      bool
}

func distribution() distro {
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		text, _ = os.ReadFile("/usr/lib/os-release") // unknown then
	}
	d := parseDistro(string(text))
	version, _ := os.ReadFile("/proc/version") // not WSL then
	d.wsl = strings.Contains(strings.ToLower(string(version)), "microsoft")
	return d
}

func parseDistro(text string) distro {
	var d distro
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(value, `"'`)
		switch key {
		case "ID":
			d.id = value
		case "ID_LIKE":
			d.like = value
		}
	}
	return d
}

// hint says how to get a kernel module.
func (d distro) hint(module string) string {
	load := fmt.Sprintf("Try modprobe %s.", module)
	is := func(ids ...string) bool {
		for _, id := range ids {
			if d.id == id || strings.Contains(" "+d.like+" ", " "+id+" ") {
				return true
			}
		}
		return false
	}
	switch {
	case d.wsl:
		return "The WSL kernel is built without " + module + ": build one from its sources with the module switched on."
	case is("ubuntu"):
		return load + " If it is not found: apt install linux-modules-extra-$(uname -r)."
	case is("debian"):
		return load + " If it is not found, this is a cloud kernel: apt install linux-image-amd64 (or -arm64) and boot it."
	case is("fedora", "rhel", "centos"):
		return load + " If it is not found: dnf install kernel-modules-extra-$(uname -r)."
	case is("suse", "opensuse"):
		return load + " If it is not found: zypper install kernel-default, and boot it instead of kernel-default-base."
	case is("arch"):
		return load + " If it is not found, the running kernel was replaced by an update: reboot."
	case is("alpine"):
		return load + " If it is not found: apk add linux-lts, and boot it instead of linux-virt."
	}
	return load
}
