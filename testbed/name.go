package testbed

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const maxDeviceName = 15 // IFNAMSIZ less its zero byte

var (
	nodeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`)
	portName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,14}$`)
)

// reserved names mean something to the kernel ("all" and "default" are
// directories of sysctls) or are read as keywords by ip(8).
var reserved = []string{
	"lo", "all", "default", "vf", "dev", "name", "type", "up", "down", "index", "mtu", "address",
	"alias", "group", "master", "netns", "peer", "promisc", "arp", "dynamic", "multicast", "addr",
	"qlen", "txqueuelen", "txqlen", "numtxqueues", "numrxqueues", "link", "via", "table", "proto",
}

const bridgeDevice = "br0" // in a bridge's namespace

// deviceName turns the name of a link, up to 63 characters, into one of a
// device, up to 15: itself where it fits, else its beginning and a hash.
func deviceName(link string) string {
	if len(link) <= maxDeviceName && !slices.Contains(reserved, link) && link != bridgeDevice {
		return link
	}
	return hashedName(link, "")
}

func hashedName(link, salt string) string {
	sum := sha256.Sum256([]byte(salt + link))
	hash := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:4])[:6])
	return link[:min(len(link), maxDeviceName-len(hash)-1)] + "-" + hash
}

// deviceNames names the device of every end of a link, [link][side]. Names are
// unique within a node.
func (g *graph) deviceNames() [][2]string {
	names := make([][2]string, len(g.Links))
	for n, ends := range g.links {
		taken := make(map[string]bool, len(ends))
		for _, e := range ends {
			if p := g.port(e); p != "" {
				names[e.link][e.side] = p
				taken[p] = true
			}
		}
		for _, e := range ends {
			if g.port(e) != "" {
				continue
			}
			link := g.Links[e.link].Name
			name := deviceName(link)
			for i := 0; taken[name]; i++ {
				name = hashedName(link, fmt.Sprintf("%s/%d/", g.Nodes[n].Name, i))
			}
			names[e.link][e.side] = name
			taken[name] = true
		}
	}
	return names
}

func (g *graph) port(e end) string {
	if e.side == 0 {
		return g.Links[e.link].PortA
	}
	return g.Links[e.link].PortB
}

// Alias is the tag that a device of a run's link carries (IFLA_IFALIAS). It,
// and never a device's name, says whose a device is.
func Alias(run, link string) string { return "wirelab:" + run + ":" + link }

// wireName is the name of a link's device in the wire namespace: "w12a" is the
// A side of the link numbered 12.
func wireName(link, side int) string {
	return "w" + strconv.Itoa(link) + string("ab"[side])
}
