package software_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ifreqData is struct ifreq with a pointer.
type ifreqData struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	_    [16]byte
}

// ethtool runs one request on a device of the namespace.
func (s space) ethtool(device string, request unsafe.Pointer) error {
	return s.do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		r := ifreqData{data: request}
		copy(r.name[:], device)
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&r)))
		runtime.KeepAlive(&r)
		if errno != 0 {
			return errno
		}
		return nil
	})
}

// transmitChecksumOff makes the kernel complete checksums, and segment trains,
// before the device.
func transmitChecksumOff(t *testing.T, s space, device string) {
	t.Helper()
	const stxcsum = 0x17
	request := [2]uint32{stxcsum, 0}
	check(t, s.ethtool(device, unsafe.Pointer(&request)))
}

// features lists the names of the device's offloads, by number.
func features(t *testing.T, s space, device string) []string {
	t.Helper()
	const gstrings, ssFeatures, nameLen, most = 0x1b, 4, 32, 256
	b := make([]byte, 12+nameLen*most)
	binary.NativeEndian.PutUint32(b, gstrings)
	binary.NativeEndian.PutUint32(b[4:], ssFeatures)
	check(t, s.ethtool(device, unsafe.Pointer(&b[0])))
	var names []string
	for i := range int(binary.NativeEndian.Uint32(b[8:])) {
		name, _, _ := bytes.Cut(b[12+i*nameLen:][:nameLen], []byte{0})
		names = append(names, string(name))
	}
	return names
}

// featuresOff switches the named offloads off, as the testbed does.
func featuresOff(t *testing.T, s space, device string, off []string) {
	t.Helper()
	const sfeatures = 0x3b
	names := features(t, s, device)
	blocks := (len(names) + 31) / 32
	b := make([]byte, 8+8*blocks) // per block of 32: those meant, those wanted
	binary.NativeEndian.PutUint32(b, sfeatures)
	binary.NativeEndian.PutUint32(b[4:], uint32(blocks))
	for _, name := range off {
		i := slices.Index(names, name)
		if i < 0 {
			t.Errorf("the kernel knows no offload %q", name)
			continue
		}
		at := b[8+i/32*8:]
		binary.NativeEndian.PutUint32(at, binary.NativeEndian.Uint32(at)|1<<(i%32))
	}
	check(t, s.ethtool(device, unsafe.Pointer(&b[0])))
}
