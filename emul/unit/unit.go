// Package unit holds the quantities of the language (rates, sizes, limits,
// ratios, durations) and their text forms.
//
// Values are stored in base units (bit/s, bytes, nanoseconds) and scaled only
// for display. A bare number is never accepted: the error names the units.
package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Rate is a bit rate in bit/s. Zero means "not limited".
type Rate int64

// Size is a number of bytes.
type Size int64

// Ratio is a dimensionless share, usually between 0 and 1; its text form is
// "2%" or "0.02".
type Ratio float64

// Limit is the capacity of a queue: exactly one of its fields is set, or none
// (no limit given).
type Limit struct {
	Bytes   Size
	Packets int64
	Time    time.Duration
}

// IsZero reports whether no limit is given.
func (l Limit) IsZero() bool { return l == Limit{} }

// BytesAt returns the limit in bytes for a link of the given rate and MTU (the
// wire size of a full packet, in bytes). A limit in time of an unlimited link
// has no size: ok is false.
func (l Limit) BytesAt(rate Rate, wireMTU int) (size Size, ok bool) {
	switch {
	case l.Bytes > 0:
		return l.Bytes, true
	case l.Packets > 0:
		return Size(l.Packets) * Size(wireMTU), true
	case l.Time > 0 && rate > 0:
		return Size(float64(rate) / 8 * l.Time.Seconds()), true
	}
	return 0, false
}

// Error is a text that is no quantity of the wanted kind.
type Error struct {
	Input string // the text given
	Want  string // what is wanted, for example `a rate such as "100mbit"`
	Hint  string // a remedy, may be empty
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("%q is not %s", e.Input, e.Want)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

const (
	wantRate     = `a rate such as "100mbit" or "2.5gbit"`
	wantSize     = `a size such as "1500B" or "64KiB"`
	wantLimit    = `a queue limit such as "100pkt", "64KiB" or "50ms"`
	wantDuration = `a duration such as "40ms" or "1.5s"`
	wantRatio    = `a ratio such as "2%" or "0.02"`
)

// rateUnits holds bit/s per unit. Units such as mbps are refused on purpose:
// tc reads them as bytes per second, most people as bits per second.
var rateUnits = map[string]float64{
	"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12,
	"bit/s": 1, "kbit/s": 1e3, "mbit/s": 1e6, "gbit/s": 1e9, "tbit/s": 1e12,
}

var sizeUnits = map[string]float64{
	"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30,
}

// split cuts text into its number and its unit (lower case).
func split(text string) (float64, string, bool) {
	t := strings.TrimSpace(text)
	i := strings.IndexFunc(t, func(r rune) bool { return !strings.ContainsRune("0123456789.+-eE", r) })
	if i < 0 {
		i = len(t)
	}
	// "1e6" is a number, the e of "1eb" is not: give letters back.
	for i > 0 && strings.ContainsRune("eE+-", rune(t[i-1])) {
		i--
	}
	v, err := strconv.ParseFloat(t[:i], 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, "", false
	}
	return v, strings.ToLower(strings.TrimSpace(t[i:])), true
}

// ParseRate reads a rate such as "100mbit" or "2.5gbit".
func ParseRate(text string) (Rate, error) {
	v, u, ok := split(text)
	if !ok {
		return 0, &Error{Input: text, Want: wantRate}
	}
	if u == "" {
		return 0, &Error{text, wantRate, fmt.Sprintf(`missing unit, did you mean "%smbit"?`, strings.TrimSpace(text))}
	}
	if strings.HasSuffix(u, "bps") {
		p := strings.TrimSuffix(u, "bps")
		return 0, &Error{text, wantRate, fmt.Sprintf(`%q is ambiguous (tc reads it as bytes per second); write "%sbit" for bits per second`, u, p)}
	}
	f, known := rateUnits[u]
	if !known {
		return 0, &Error{text, wantRate, "known units are bit, kbit, mbit, gbit, tbit"}
	}
	if v < 0 || v*f > math.MaxInt64/16 {
		return 0, &Error{text, wantRate, "it must be between 0 and 500000 tbit"}
	}
	if v > 0 && v*f < 1 {
		return 0, &Error{text, wantRate, "it must be at least 1bit"}
	}
	return Rate(math.Round(v * f)), nil
}

// ParseSize reads a size in bytes such as "1500B", "64KiB" or "1MB".
func ParseSize(text string) (Size, error) {
	v, u, ok := split(text)
	if !ok {
		return 0, &Error{Input: text, Want: wantSize}
	}
	if u == "" {
		return 0, &Error{text, wantSize, fmt.Sprintf(`missing unit, did you mean "%sB"?`, strings.TrimSpace(text))}
	}
	f, known := sizeUnits[u]
	if !known {
		return 0, &Error{text, wantSize, "known units are B, kB, MB, GB, KiB, MiB, GiB"}
	}
	if v < 0 || v*f > math.MaxInt64/16 {
		return 0, &Error{text, wantSize, "it must not be negative or above 500 PB"}
	}
	return Size(math.Round(v * f)), nil
}

// ParseDuration reads a duration such as "40ms". Negative ones are refused.
func ParseDuration(text string) (time.Duration, error) {
	t := strings.TrimSpace(text)
	if _, u, ok := split(t); ok && u == "" && t != "0" {
		return 0, &Error{text, wantDuration, fmt.Sprintf(`missing unit, did you mean "%sms" or "%ss"?`, t, t)}
	}
	d, err := time.ParseDuration(t)
	if err != nil {
		return 0, &Error{text, wantDuration, "known units are ns, us, ms, s, m, h"}
	}
	if d < 0 {
		return 0, &Error{text, wantDuration, "it must not be negative"}
	}
	return d, nil
}

// ParseRatio reads a share such as "2%" or "0.02".
func ParseRatio(text string) (Ratio, error) {
	v, u, ok := split(text)
	switch {
	case !ok || u != "" && u != "%":
		return 0, &Error{Input: text, Want: wantRatio}
	case u == "%":
		return Ratio(v / 100), nil
	}
	return Ratio(v), nil
}

// ParseLimit reads a queue limit: packets ("100pkt"), bytes ("64KiB") or time
// at the link's rate ("50ms").
func ParseLimit(text string) (Limit, error) {
	v, u, ok := split(text)
	if !ok {
		return Limit{}, &Error{Input: text, Want: wantLimit}
	}
	if u == "" {
		return Limit{}, &Error{text, wantLimit, fmt.Sprintf(`missing unit, did you mean "%spkt"?`, strings.TrimSpace(text))}
	}
	if v <= 0 {
		return Limit{}, &Error{text, wantLimit, "it must be positive"}
	}
	if u == "pkt" || u == "packet" || u == "packets" {
		if v != math.Trunc(v) || v > math.MaxInt32 {
			return Limit{}, &Error{text, wantLimit, "packets are whole, at most 2147483647"}
		}
		return Limit{Packets: int64(v)}, nil
	}
	if _, known := sizeUnits[u]; known {
		s, err := ParseSize(text)
		if err != nil {
			return Limit{}, err
		}
		if s == 0 {
			return Limit{}, &Error{text, wantLimit, "it is less than a byte"}
		}
		return Limit{Bytes: s}, nil
	}
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || d == 0 {
		return Limit{}, &Error{text, wantLimit, "known units are pkt, B, kB, MB, KiB, MiB, us, ms, s"}
	}
	return Limit{Time: d}, nil
}

// trim formats v with at most six significant digits.
func trim(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// String returns the rate in the largest unit that keeps it at 1 or more; the
// text parses back to the same rate within six digits.
func (r Rate) String() string {
	v := float64(r)
	for _, u := range []struct {
		f float64
		n string
	}{{1e12, "tbit"}, {1e9, "gbit"}, {1e6, "mbit"}, {1e3, "kbit"}} {
		if v >= u.f {
			return trim(v/u.f) + u.n
		}
	}
	return trim(v) + "bit"
}

// String returns the size in bytes, exactly, or in KiB, MiB where that is
// whole.
func (s Size) String() string {
	switch {
	case s != 0 && s%(1<<20) == 0:
		return strconv.FormatInt(int64(s>>20), 10) + "MiB"
	case s != 0 && s%(1<<10) == 0:
		return strconv.FormatInt(int64(s>>10), 10) + "KiB"
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// String returns the ratio in percent.
func (r Ratio) String() string { return trim(float64(r)*100) + "%" }

// String returns the limit as it would be written.
func (l Limit) String() string {
	switch {
	case l.Packets > 0:
		return strconv.FormatInt(l.Packets, 10) + "pkt"
	case l.Bytes > 0:
		return l.Bytes.String()
	case l.Time > 0:
		return l.Time.String()
	}
	return "none"
}

// BDP returns the bandwidth-delay product times n, in bytes, at least two full
// packets of wireMTU bytes.
func BDP(rate Rate, rtt time.Duration, n float64, wireMTU int) Size {
	return max(Size(math.Round(float64(rate)/8*rtt.Seconds()*n)), Size(2*wireMTU))
}
