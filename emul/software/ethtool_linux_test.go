package software_test

import (
	"runtime"
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
