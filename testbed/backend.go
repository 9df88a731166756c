package testbed

import (
	"fmt"
	"strconv"
	"strings"

	"wirelab/emul"
)

// BackendNone is the backend of a link without impairments: a bare veth pair.
const BackendNone = "none"

// EmulationAuto is the value of emulation that is no backend's name.
const EmulationAuto = "auto"

// ChooseBackend decides who enforces a link's impairments, and says why. The
// link's own Emulation, if it has one, beats the argument. With "auto" (or "")
// it is the first backend that supports both directions, or none where nothing
// is asked; otherwise the one of that name. The error names the field that
// no backend, or not the asked one, can do: it is an [emul.UnsupportedError]
// where one backend was asked.
func ChooseBackend(link Link, emulation string, backends []emul.Backend) (name, why string, err error) {
	if link.Emulation != "" {
		emulation = link.Emulation
	}
	auto := emulation == "" || emulation == EmulationAuto
	if auto && link.Forward.IsZero() && link.Reverse.IsZero() && !link.EventLog {
		return BackendNone, "nothing is asked of it", nil
	}
	var refused error
	known := false
	for _, b := range backends {
		if !auto && b.Name() != emulation {
			continue
		}
		known = true
		if refused = supports(b, link); refused != nil {
			continue
		}
		if auto {
			return b.Name(), "the first that supports every field", nil
		}
		return b.Name(), fmt.Sprintf("emulation = %q", emulation), nil
	}
	if !known {
		names := make([]string, len(backends))
		for i, b := range backends {
			names[i] = strconv.Quote(b.Name())
		}
		return "", "", fmt.Errorf("link %q: there is no backend %q: known are %s",
			link.Name, emulation, strings.Join(append([]string{`"auto"`}, names...), ", "))
	}
	return "", "", fmt.Errorf("link %q: %w", link.Name, refused)
}

func supports(b emul.Backend, link Link) error {
	if err := b.Supports(link.Forward); err != nil {
		return err
	}
	return b.Supports(link.Reverse)
}
