package instrument

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of SIOCETHTOOL and the number of the set of feature names
// (linux/ethtool.h).
const (
	ethtoolGetStrings  = 0x1b
	ethtoolSetInfo     = 0x37
	ethtoolGetFeatures = 0x3a
	featureNames       = 4  // ETH_SS_FEATURES
	featureNameLen     = 32 // ETH_GSTRING_LEN
)

// Offloads reads which offloads of a device are on: those of segmentation,
// checksums, receive coalescing and scatter-gather, by their names in ethtool,
// sorted.
func Offloads(ns Namespace, device string) ([]string, error) {
	var on []string
	err := ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		on, err = offloads(fd, device)
		return errors.Join(err, unix.Close(fd))
	})
	if err != nil {
		return nil, fmt.Errorf("read the offloads of %s: %w", device, err)
	}
	return on, nil
}

func offloads(fd int, device string) ([]string, error) {
	// struct ethtool_sset_info: command, reserved, mask, one length.
	info := make([]byte, 20)
	binary.NativeEndian.PutUint32(info, ethtoolSetInfo)
	binary.NativeEndian.PutUint64(info[8:], 1<<featureNames)
	if err := ethtool(fd, device, info); err != nil {
		return nil, err
	}
	n := int(binary.NativeEndian.Uint32(info[16:]))
	// struct ethtool_gstrings: command, set, length, names.
	names := make([]byte, 12+n*featureNameLen)
	binary.NativeEndian.PutUint32(names, ethtoolGetStrings)
	binary.NativeEndian.PutUint32(names[4:], featureNames)
	binary.NativeEndian.PutUint32(names[8:], uint32(n))
	if err := ethtool(fd, device, names); err != nil {
		return nil, err
	}
	// struct ethtool_gfeatures: command, size, then four masks a word:
	// available, requested, active, never changed.
	words := (n + 31) / 32
	state := make([]byte, 8+words*16)
	binary.NativeEndian.PutUint32(state, ethtoolGetFeatures)
	binary.NativeEndian.PutUint32(state[4:], uint32(words))
	if err := ethtool(fd, device, state); err != nil {
		return nil, err
	}
	var on []string
	for i := range n {
		name, _, _ := bytes.Cut(names[12+i*featureNameLen:12+(i+1)*featureNameLen], []byte{0})
		active := binary.NativeEndian.Uint32(state[8+i/32*16+8:])
		if active>>(i%32)&1 == 1 && changesPackets(string(name)) {
			on = append(on, string(name))
		}
	}
	slices.Sort(on)
	return on, nil
}

// changesPackets tells whether an offload changes what a packet is on its way.
func changesPackets(feature string) bool {
	for _, part := range []string{"segmentation", "checksum", "gro", "gso", "lro", "scatter"} {
		if strings.Contains(feature, part) {
			return true
		}
	}
	return false
}

// ethtool makes one request about a device.
func ethtool(fd int, device string, request []byte) error {
	var r struct { // struct ifreq with a pointer, netdevice(7)
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}
	copy(r.name[:unix.IFNAMSIZ-1], device)
	r.data = unsafe.Pointer(&request[0])
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r))); e != 0 {
		return e
	}
	return nil
}
