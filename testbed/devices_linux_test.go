package testbed

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"wirelab/emul"
	"wirelab/emul/software"
)

// The node's side keeps TCP segmentation and loses what does not fit a packet
// socket; a bare link keeps everything.
func TestUpOffloads(t *testing.T) {
	t.Parallel()
	topo := chainOf(3)
	topo.Links[0].Forward.Delay = time.Millisecond
	tb := bringUp(t, topo)
	if err := tb.Host("n1").Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, c := range []struct {
			device, feature string
			want            bool
		}{
			{"l1", "tx-tcp-segmentation", true}, {"l1", "tx-udp_tnl-segmentation", false}, {"l1", "tx-gre-segmentation", false},
			{"l2", "tx-tcp-segmentation", true}, {"l2", "tx-udp_tnl-segmentation", true},
		} {
			on, err := hasFeature(fd, c.device, c.feature)
			if err != nil || on != c.want {
				t.Errorf("%s of %s is %v, %v, want %v", c.feature, c.device, on, err, c.want)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// hasFeature reads an active feature (ETHTOOL_GFEATURES).
func hasFeature(fd int, dev, name string) (bool, error) {
	var f features
	names, err := f.load(fd, dev)
	if err != nil {
		return false, err
	}
	i := slices.Index(names, name)
	if i < 0 {
		return false, fmt.Errorf("there is no feature %s", name)
	}
	words := (len(names) + 31) / 32
	request := make([]byte, 8+16*words) // available, requested, active, never changed
	binary.NativeEndian.PutUint32(request, 0x3a)
	binary.NativeEndian.PutUint32(request[4:], uint32(words))
	if err := ethtool(fd, dev, request); err != nil {
		return false, err
	}
	return binary.NativeEndian.Uint32(request[8+16*(i/32)+8:])&(1<<(i%32)) != 0, nil
}

// What arrives at the wires is steered, by inheritance or one by one.
func TestSteer(t *testing.T) {
	t.Parallel()
	topo := impaired(chainOf(2), emul.Impairment{Delay: time.Millisecond})
	tb := bringUp(t, topo)
	mask := func() string {
		var got string
		if err := tb.wire.Do(func() error {
			b, err := readSysfs("class/net/w0a/queues/rx-0/rps_cpus")
			got = strings.TrimLeft(strings.TrimSpace(b), "0,")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := strings.TrimLeft(steeringMask(software.New(software.Options{})), "0,")
	if got := mask(); got != want {
		t.Errorf("packets are steered to %q, want %q", got, want)
	}
	if err := steer(tb.wire, []string{"w0a"}, "1"); err != nil {
		t.Fatal(err)
	}
	if got := mask(); got != "1" {
		t.Errorf("packets are steered to %q, want 1", got)
	}
}

func readSysfs(path string) (string, error) {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return "", err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return "", err
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(root)
	fd, err := unix.Openat(root, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var b [256]byte
	n, err := unix.Read(fd, b[:])
	return string(b[:max(n, 0)]), err
}

func TestCPUMask(t *testing.T) {
	for list, want := range map[string]string{"0": "1", "0-1": "3", "0-3,8": "10f", "0-31": "ffffffff", "0-32": "1,ffffffff", "64": "1,00000000,00000000"} {
		if got, ok := cpuMask(list); got != want || !ok {
			t.Errorf("mask of %s is %s, want %s", list, got, want)
		}
	}
	if _, ok := cpuMask("x"); ok {
		t.Error("x is a list")
	}
}
