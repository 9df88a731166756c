package lang

import (
	"runtime"
	"strings"
	"testing"
)

// TestTooDeep loads what would overflow the stack of the parser.
func TestTooDeep(t *testing.T) {
	const n = 4 * maxChain
	for name, expression := range map[string]string{
		"lists":       strings.Repeat("[", n) + strings.Repeat("]", n),
		"parentheses": strings.Repeat("(", n),
		"nots":        strings.Repeat("!", n) + "true",
		"minuses":     strings.Repeat("- ", n) + "1",
		"additions":   strings.Repeat("1+", n) + "1",
		"ternaries":   strings.Repeat("true ? 1 : ", n) + "1",
		"indices":     "a" + strings.Repeat("[0]", n),
		"attributes":  "a" + strings.Repeat(".b", n),
		"splats":      "a" + strings.Repeat(".*", n),
		"templates":   strings.Repeat(`"${`, n),
		"lines":       "(" + strings.Repeat("!\n", n) + "true)",
		"comments":    "[" + strings.Repeat("!/**/", n) + "true]",
	} {
		t.Run(name, func(t *testing.T) {
			text := "experiment \"deep\" {\n  duration = \"1s\"\n}\n\nlocals {\n  a = " + expression + "\n}\n"
			_, _, diags := loadText(t, text)
			if len(diags) == 0 || diags[0].Summary != "Nested too deeply" || diags[0].Line < 6 {
				t.Fatalf("diagnostics: %.300v", diags)
			}
			if out, diags := Format("x.hcl", []byte(text)); string(out) != text || !diags.HasErrors() {
				t.Errorf("formatted what cannot be parsed, or said nothing")
			}
		})
	}
}

// TestLongIsNotDeep loads what is large and flat.
func TestLongIsNotDeep(t *testing.T) {
	const n = 3 * maxChain
	var lines strings.Builder
	for range n {
		lines.WriteString("  # a = ((1 + 1)\n")
	}
	mustLoad(t, "experiment \"flat\" {\n  duration = \"1s\"\n}\n\nlocals {\n"+lines.String()+
		"  list = ["+strings.Repeat("-1 + (2), ", n)+"]\n"+
		"  text = \""+strings.Repeat("${1 + 1}", n)+"\"\n"+
		"  deep = "+strings.Repeat("(", maxNesting-10)+"1"+strings.Repeat(")", maxNesting-10)+"\n}\n")
}

// TestEndlessFile reads a file that never ends and has no size.
func TestEndlessFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /dev/zero")
	}
	_, _, diags := Load([]string{"/dev/zero"}, Options{})
	if len(diags) == 0 || !strings.Contains(diags[0].Detail, "more than the 16777216 bytes") {
		t.Errorf("diagnostics: %v", diags)
	}
}

// TestBadFlagOnce tells a wrong value of a variable once, not also that there
// is none.
func TestBadFlagOnce(t *testing.T) {
	text := "experiment \"once\" {\n  duration = \"1s\"\n}\n\nvariable \"v\" {\n  type = number\n}\n"
	_, _, diags := loadText(t, text, func(o *Options) { o.Variables = map[string]string{"v": "[1,"} })
	if len(diags) != 1 || !strings.Contains(diags[0].Summary, "--var v=[1,") {
		t.Errorf("diagnostics: %v", diags)
	}
}

// TestWrittenForPeople shows neither endless lists and lines nor what a
// terminal would obey.
func TestWrittenForPeople(t *testing.T) {
	long := "locals {\n  a = \"\x1b[2J" + strings.Repeat("x", 500) + "\" + nothing.here + \"" + strings.Repeat("y", 500) + "\"\n}\n"
	_, _, diags := loadText(t, "experiment \"e\" {\n  duration = \"1s\"\n}\n\n"+long+strings.Repeat("what {\n}\n", 3*maxTold))
	var b strings.Builder
	if err := diags.WriteText(&b, 0, false); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Contains(text, "\x1b") {
		t.Error("a control character is shown")
	}
	if n := strings.Count(text, "Error:"); n != maxTold || !strings.Contains(text, " more, which") {
		t.Errorf("%d of %d shown", n, len(diags))
	}
	marked := false
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if n := len([]rune(line)); n > maxSnippet+20 {
			t.Errorf("a line of %d characters is shown: %.300s", n, line)
		}
		if strings.Count(line, "^") == len("nothing.here") {
			marked = true
			before, _, _ := strings.Cut(lines[i-1], "nothing.here")
			if len([]rune(before)) != strings.Index(line, "^") {
				t.Errorf("the mark is not below its place:\n%s\n%s", lines[i-1], line)
			}
		}
	}
	if !marked {
		t.Errorf("the place is not shown:\n%s", text)
	}
}
