package lang

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const wrong = "experiment \"x\" {\n\tduration = \"ä\" == \"ö\" ? 1 : 2\n}\n"

func TestDiagnosticsText(t *testing.T) {
	_, _, diags := loadText(t, wrong)
	var b strings.Builder
	if err := diags.WriteText(&b, 60, false); err != nil {
		t.Fatal(err)
	}
	want := `Error: Missing unit of duration
  x.hcl:2:13, in experiment "x"
    2 | 	duration = "ä" == "ö" ? 1 : 2
      | 	           ^^^^^^^^^^^^^^^^^^
  "2" is not a duration such as "40ms" or "1.5s": missing
  unit, did you mean "2ms" or "2s"? A quantity is text with
  a unit.

`
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
	var c strings.Builder
	if err := diags.WriteText(&c, 60, true); err != nil || !strings.Contains(c.String(), "\x1b[31m") {
		t.Errorf("no colour (%v): %q", err, c.String())
	}
}

func TestDiagnosticsJSON(t *testing.T) {
	_, _, diags := loadText(t, wrong)
	var b bytes.Buffer
	if err := diags.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got []Diagnostic
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != diags[0] || got[0].EndLine != 2 || got[0].EndColumn != 31 || got[0].Severity != SeverityError {
		t.Errorf("got %+v", got)
	}
	var empty bytes.Buffer
	if err := Diagnostics(nil).WriteJSON(&empty); err != nil || strings.TrimSpace(empty.String()) != "[]" {
		t.Errorf("no diagnostics are %q, %v", empty.String(), err)
	}
}

func TestDiagnosticsAsError(t *testing.T) {
	_, _, diags := loadText(t, wrong)
	var d Diagnostics
	if err := diags.Err(); !errors.As(err, &d) || !strings.HasPrefix(err.Error(), "x.hcl:2:13: Missing unit of duration: ") {
		t.Errorf("as an error: %v", err)
	}
	warning := Diagnostics{{Severity: SeverityWarning, Summary: "only a doubt"}}
	if warning.Err() != nil || warning.HasErrors() || warning.Count(SeverityWarning) != 1 {
		t.Error("a warning counts as an error")
	}
}

// TestDynamicJudges makes checks, claims and figures by dynamic blocks.
func TestDynamicJudges(t *testing.T) {
	x := mustLoad(t, judged+`
dynamic "check" {
  for_each = ["a", "b"]
  labels   = ["${check.value} moves"]
  content {
    condition     = result[check.value].goodput_bps > 60
    error_message = "${check.value} is slow"
  }
}
dynamic "claim" {
  for_each = [1, 2]
  labels   = ["buffer ${claim.value}"]
  content {
    value     = median(result.b.goodput_bps, sweep.buffer == claim.value)
    condition = value == claim.value * 50
  }
}
dynamic "figure" {
  for_each = ["a", "b"]
  labels   = [figure.value]
  content {
    x  = "buffer"
    by = "cca"
    y  = ["${figure.value}.goodput_bps"]
  }
}
`)
	if len(x.Checks) != 2 || len(x.Claims) != 2 || len(x.Figures) != 2 {
		t.Fatalf("%d checks, %d claims, %d figures", len(x.Checks), len(x.Claims), len(x.Figures))
	}
	runs := runsOf(x)
	pass, message, err := x.Checks[1].Eval(runs[0])
	if x.Checks[1].Name != "b moves" || pass || message != "b is slow" || err != nil {
		t.Errorf("check: %v %q %v", pass, message, err)
	}
	for _, c := range x.Claims {
		if e, err := c.Eval(runs); err != nil || !e.Condition {
			t.Errorf("%s: %+v %v", c.Name, e, err)
		}
	}
	if f := x.Figures[1]; f.Name != "b" || f.Y[0] != "b.goodput_bps" || f.By != "cca" || f.Kind != "line" || f.Title != "b" {
		t.Errorf("figure: %+v", f)
	}
}
