package testbed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"wirelab/testbed/netns"
)

// unportable lists the offloads that are switched off on a node's side of an
// impaired link: super-packets of these kinds cannot be described by the
// header of a packet socket (struct virtio_net_hdr knows TCP and UDP without
// encapsulation), so that a backend would lose them. Without them the node
// segments such packets itself. TCP and UDP segmentation stay on.
var unportable = []string{
	"tx-udp_tnl-segmentation", "tx-udp_tnl-csum-segmentation", "tx-tunnel-remcsum-segmentation",
	"tx-gre-segmentation", "tx-gre-csum-segmentation",
	"tx-ipxip4-segmentation", "tx-ipxip6-segmentation",
	"tx-sctp-segmentation", "tx-checksum-sctp", "tx-esp-segmentation",
	"tx-gso-partial", "tx-gso-list",
}

// udpSegmentation fits the header since Linux 6.2.
const udpSegmentation = "tx-udp-segmentation"

// Commands of SIOCETHTOOL and the number of the set of feature names
// (linux/ethtool.h).
const (
	ethtoolGetStrings  = 0x1b
	ethtoolSetInfo     = 0x37
	ethtoolSetFeatures = 0x3b
	featureNames       = 4  // ETH_SS_FEATURES
	stringLength       = 32 // ETH_GSTRING_LEN
)

// features is the list of feature names of this kernel, the same for all
// devices.
type features struct {
	once  sync.Once
	names []string
	err   error
}

// ifreq is struct ifreq with a pointer (netdevice(7)).
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

func ethtool(fd int, dev string, command []byte) error {
	r := ifreq{data: unsafe.Pointer(&command[0])}
	copy(r.name[:unix.IFNAMSIZ-1], dev)
	_, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
	if e != 0 {
		return e
	}
	return nil
}

// load asks for the names, through any device.
func (f *features) load(fd int, dev string) ([]string, error) {
	f.once.Do(func() {
		// struct ethtool_sset_info: command, reserved, mask, one length.
		info := make([]byte, 20)
		binary.NativeEndian.PutUint32(info, ethtoolSetInfo)
		binary.NativeEndian.PutUint64(info[8:], 1<<featureNames)
		if f.err = ethtool(fd, dev, info); f.err != nil {
			return
		}
		n := int(binary.NativeEndian.Uint32(info[16:]))
		// struct ethtool_gstrings: command, set, length, names.
		list := make([]byte, 12+n*stringLength)
		binary.NativeEndian.PutUint32(list, ethtoolGetStrings)
		binary.NativeEndian.PutUint32(list[4:], featureNames)
		binary.NativeEndian.PutUint32(list[8:], uint32(n))
		if f.err = ethtool(fd, dev, list); f.err != nil {
			return
		}
		for i := range n {
			name := list[12+i*stringLength:][:stringLength]
			name, _, _ = bytes.Cut(name, []byte{0})
			f.names = append(f.names, string(name))
		}
	})
	return f.names, f.err
}

// off switches features of a device off; names that this kernel does not have
// are left out.
func (f *features) off(fd int, dev string, list []string) error {
	names, err := f.load(fd, dev)
	if err != nil {
		return fmt.Errorf("list offloads of %s: %w", dev, err)
	}
	words := (len(names) + 31) / 32
	// struct ethtool_sfeatures: command, words, then per word valid and wanted.
	request := make([]byte, 8+8*words)
	binary.NativeEndian.PutUint32(request, ethtoolSetFeatures)
	binary.NativeEndian.PutUint32(request[4:], uint32(words))
	for i, name := range names {
		if slices.Contains(list, name) {
			valid := request[8+8*(i/32):]
			binary.NativeEndian.PutUint32(valid, binary.NativeEndian.Uint32(valid)|1<<(i%32))
		}
	}
	if err := ethtool(fd, dev, request); err != nil {
		return fmt.Errorf("switch offloads of %s off: %w", dev, err)
	}
	return nil
}

// trimOffloads switches off, on devices of a namespace, what a backend could
// not carry.
func (f *features) trimOffloads(ns *netns.NS, devices []string, list []string) error {
	return ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("switch offloads off: %w", err)
		}
		defer unix.Close(fd)
		var errs []error
		for _, d := range devices {
			errs = append(errs, f.off(fd, d, list))
		}
		return errors.Join(errs...)
	})
}

// offloadsOff is what to switch off on this kernel.
func offloadsOff() []string {
	if kernelAtLeast(6, 2) {
		return unportable
	}
	return append(slices.Clone(unportable), udpSegmentation)
}

// kernelAtLeast compares the release of the running kernel.
func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	var a, b int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b); err != nil {
		return false
	}
	return a > major || a == major && b >= minor
}
