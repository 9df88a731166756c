package instrument

import (
	"context"
	"testing"

	"wirelab/emul/unit"
)

func TestCaptureValidates(t *testing.T) {
	c := newCapture().(*Capture)
	if p := c.Validate(); len(p) != 1 {
		t.Errorf("a capture of nothing: problems %v", p)
	}
	c.On = "left1"
	if p := c.Validate(); len(p) != 0 {
		t.Errorf("problems %v", p)
	}
	c.Snaplen, c.Ring = 0, unit.Size(1000)
	if p := c.Validate(); len(p) != 2 {
		t.Errorf("problems %v, want two", p)
	}
	c.Link = "net.bottleneck"
	if nodes, links := c.Needs(); len(nodes) != 1 || len(links) != 1 {
		t.Errorf("needs %v, %v", nodes, links)
	}
	c.Enabled = false
	if nodes, links := c.Needs(); len(nodes)+len(links)+len(c.Metrics()) != 0 {
		t.Error("a disabled capture needs something")
	}
}

func TestCaptureFindsItsDevices(t *testing.T) {
	target := Target{Devices: map[string][2]Device{
		"net.a": {{Node: "left1", Name: "a0"}, {Node: "r1", Name: "a1"}},
		"net.b": {{Node: "r1", Name: "b0"}, {Node: "r2", Name: "b1"}},
	}}
	for _, c := range []struct {
		on, link string
		want     []string // "" for an error
	}{
		{"r1", "", []string{"a1", "b0"}}, {"", "net.b", []string{"b0", "b1"}}, {"r1", "net.b", []string{"a1", "b0", "b1"}},
		{"ghost", "", nil}, {"", "net.c", nil},
	} {
		devices, err := (&Capture{On: c.on, Link: c.link}).devices(&target)
		if (err != nil) != (c.want == nil) || len(devices) != len(c.want) {
			t.Errorf("%+v: devices %v, error %v", c, devices, err)
			continue
		}
		for i, name := range c.want {
			if devices[i].Name != name {
				t.Errorf("%+v: devices %v", c, devices)
			}
		}
	}
}

func TestCaptureNeedsItsNamespace(t *testing.T) {
	target := Target{Dir: t.TempDir(), Devices: map[string][2]Device{"net.a": {{Node: "left1", Name: "a0"}}}}
	c := newCapture().(*Capture)
	c.On = "left1"
	if _, err := c.Start(context.Background(), target); err == nil {
		t.Error("captured at a node without a namespace")
	}
}
