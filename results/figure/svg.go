package figure

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// canvas collects the elements of one drawing. Coordinates are in user units,
// about one CSS pixel.
type canvas struct {
	b strings.Builder
}

// escape makes s safe in XML, where most control characters must not stand.
func escape(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff {
			return utf8.RuneError
		}
		return r
	}, s))
}

// coord writes a coordinate with at most one decimal, so that files stay small
// and equal on every machine.
func coord(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0 // never reached: drawing code filters values first
	}
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

func (c *canvas) open(class string) { fmt.Fprintf(&c.b, "<g class=%q>\n", class) }
func (c *canvas) close()            { c.b.WriteString("</g>\n") }

// text draws s; anchor is start, middle or end.
func (c *canvas) text(x, y float64, class, anchor, s string) {
	extra := ""
	if anchor != "start" {
		extra = ` text-anchor="` + anchor + `"`
	}
	fmt.Fprintf(&c.b, `<text x="%s" y="%s" class="%s"%s>%s</text>`+"\n", coord(x), coord(y), class, extra, escape(s))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.b, `<path d="M%s %sL%s %s" class="%s"/>`+"\n", coord(x1), coord(y1), coord(x2), coord(y2), class)
}

func (c *canvas) path(d, class string) {
	fmt.Fprintf(&c.b, `<path d="%s" class="%s"/>`+"\n", d, class)
}

func (c *canvas) rect(x, y, w, h float64, class string) {
	fmt.Fprintf(&c.b, `<rect x="%s" y="%s" width="%s" height="%s" class="%s"/>`+"\n", coord(x), coord(y), coord(w), coord(h), class)
}

func (c *canvas) circle(x, y, r float64, class string) {
	fmt.Fprintf(&c.b, `<circle cx="%s" cy="%s" r="%s" class="%s"/>`+"\n", coord(x), coord(y), coord(r), class)
}

// tooltip wraps what draw adds in a group with a title.
func (c *canvas) tooltip(text string, draw func()) {
	fmt.Fprintf(&c.b, "<g><title>%s</title>\n", escape(text))
	draw()
	c.b.WriteString("</g>\n")
}

// marker draws the mark of series i: shapes differ, so that colour is never
// the only key.
func (c *canvas) marker(i int, x, y, r float64, class string) {
	poly := func(pts ...float64) {
		var d strings.Builder
		for k := 0; k < len(pts); k += 2 {
			d.WriteString(map[bool]string{true: "M", false: "L"}[k == 0] + coord(x+pts[k]*r) + " " + coord(y+pts[k+1]*r))
		}
		c.path(d.String()+"Z", class)
	}
	switch i % markers {
	case 0:
		c.circle(x, y, r, class)
	case 1:
		poly(-.9, -.9, .9, -.9, .9, .9, -.9, .9)
	case 2:
		poly(0, -1.15, 1.1, .85, -1.1, .85)
	case 3:
		poly(0, -1.25, 1.25, 0, 0, 1.25, -1.25, 0)
	case 4:
		poly(0, 1.15, 1.1, -.85, -1.1, -.85)
	default:
		poly(-.4, -1.1, .4, -1.1, .4, -.4, 1.1, -.4, 1.1, .4, .4, .4, .4, 1.1, -.4, 1.1, -.4, .4, -1.1, .4, -1.1, -.4, -.4, -.4)
	}
}

const markers = 6

// document wraps the canvas as a self-contained SVG with title and description
// for screen readers. The id must be unique on a page.
func (c *canvas) document(id, title, desc string, width, height float64) []byte {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="wl" viewBox="0 0 %s %s" width="%s" height="%s" role="img" aria-labelledby="%s-t %s-d">`+"\n",
		coord(width), coord(height), coord(width), coord(height), id, id)
	fmt.Fprintf(&out, "<title id=\"%s-t\">%s</title>\n<desc id=\"%s-d\">%s</desc>\n", id, escape(title), id, escape(desc))
	out.WriteString(styleOpen + Style() + styleClose)
	out.WriteString(c.b.String())
	out.WriteString("</svg>\n")
	return []byte(out.String())
}

const (
	styleOpen  = "<style>"
	styleClose = "</style>\n"
)

// Inline returns an SVG of this package without its style element, to be put
// on a page that holds [Style] once.
func Inline(svg []byte) []byte {
	s := string(svg)
	i := strings.Index(s, styleOpen)
	j := strings.Index(s, styleClose)
	if i < 0 || j < i {
		return svg
	}
	return []byte(s[:i] + s[j+len(styleClose):])
}

// textWidth estimates the width of s at 12 px in a system font.
func textWidth(s string) float64 { return 6.7 * float64(utf8.RuneCountInString(s)) }

// boldWidth is textWidth for labels in bold.
func boldWidth(s string) float64 { return 1.13 * textWidth(s) }

// clip shortens s to about width user units.
func clip(s string, width float64) string {
	limit := int(width / 6.7)
	if utf8.RuneCountInString(s) <= limit || limit < 2 {
		return s
	}
	return strings.TrimRight(string([]rune(s)[:limit-1]), " ,") + "…"
}

// identifier makes a name safe as an XML id.
func identifier(prefix, name string) string {
	return prefix + "-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}
