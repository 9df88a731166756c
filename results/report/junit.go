package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"wirelab/results"
)

// The elements of JUnit XML that test reporters read.
type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Hostname  string      `xml:"hostname,attr,omitempty"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Time    string        `xml:"time,attr"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// renderJUnit writes three suites: every run (failed ones are errors, invalid
// ones are skipped), every check of every valid run, every claim. In smoke,
// where checks decide nothing, a failed check is skipped with its message.
func renderJUnit(d *data) ([]byte, error) {
	name := "wirelab." + d.Manifest.Experiment
	all := junitSuites{Name: name}
	runs, checks := junitSuite{Name: name + ".runs"}, junitSuite{Name: name + ".checks"}
	total := 0.0
	for _, r := range d.Runs {
		runs.Cases = append(runs.Cases, runCase(name, r))
		total += r.Duration.Seconds()
		if !r.Usable() {
			continue
		}
		for _, c := range r.Checks {
			checks.Cases = append(checks.Cases, d.checkCase(name, r, c))
		}
	}
	claims := junitSuite{Name: name + ".claims"}
	for _, c := range d.Claims {
		claims.Cases = append(claims.Cases, claimCase(name, c))
	}
	runs.Time = fmt.Sprintf("%.3f", total)
	checks.Time, claims.Time = "0.000", "0.000"
	for _, s := range []junitSuite{runs, checks, claims} {
		s.Hostname = d.Manifest.Host.Hostname
		if !d.Manifest.Started.IsZero() {
			s.Timestamp = d.Manifest.Started.UTC().Format("2006-01-02T15:04:05")
		}
		s.tally()
		all.Tests += s.Tests
		all.Failures += s.Failures
		all.Errors += s.Errors
		all.Suites = append(all.Suites, s)
	}
	all.Time = runs.Time
	var out bytes.Buffer
	out.WriteString(xml.Header)
	e := xml.NewEncoder(&out)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return nil, fmt.Errorf("write checks.xml: %w", err)
	}
	out.WriteString("\n")
	return out.Bytes(), nil
}

func (s *junitSuite) tally() {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
}

func runCase(name string, r *results.Run) junitCase {
	c := junitCase{Class: name + ".runs", Name: runName(r), Time: fmt.Sprintf("%.3f", r.Duration.Seconds())}
	switch {
	case !r.HasMetrics():
		c.Error = &junitMessage{Message: whyLeftOut(r), Type: string(r.Status)}
	case !r.Valid:
		c.Skipped = &junitMessage{Message: whyLeftOut(r)}
	case len(r.Notes) > 0:
		c.Out = strings.Join(r.Notes, "\n")
	}
	return c
}

func runName(r *results.Run) string {
	return fmt.Sprintf("run %d: %s, repetition %d", r.Index, r.Point.ID, r.Repetition)
}

func (d *data) checkCase(name string, r *results.Run, c results.CheckResult) junitCase {
	t := junitCase{Class: name + ".checks", Name: c.Name + " (" + runName(r) + ")", Time: "0.000"}
	switch {
	case c.Pass && c.Error == "":
	case d.Manifest.Smoke:
		t.Skipped = &junitMessage{Message: "a smoke run decides no check: " + checkMessage(c)}
	case c.Error != "":
		t.Error = &junitMessage{Message: c.Error, Type: "condition"}
	default:
		t.Failure = &junitMessage{Message: checkMessage(c), Type: "check"}
	}
	return t
}

func claimCase(name string, c results.ClaimResult) junitCase {
	t := junitCase{Class: name + ".claims", Name: c.Name, Time: "0.000"}
	text := claimValue(c)
	if c.Published != "" {
		text = strings.TrimSpace(text + " (published: " + c.Published + ")")
	}
	switch c.Verdict {
	case results.Holds:
		t.Out = text
	case results.Fails:
		t.Failure = &junitMessage{Message: strings.TrimSpace("the claim fails: " + text), Type: "claim", Text: c.Reason}
	default:
		t.Skipped = &junitMessage{Message: strings.TrimSpace(string(c.Verdict) + ": " + c.Reason)}
		t.Out = text
	}
	return t
}
