package figure

import (
	"fmt"
	"strings"
)

// colour is one colour on light and on dark paper.
type colour struct{ light, dark string }

// palette holds the colours of Okabe and Ito (2008), which stay apart for the
// common kinds of colour blindness. On dark paper the dark ones change places
// with the light ones.
var palette = []colour{
	{"#0072b2", "#56b4e9"}, // blue, sky blue
	{"#d55e00", "#e69f00"}, // vermilion, orange
	{"#009e73", "#009e73"}, // bluish green
	{"#cc79a7", "#cc79a7"}, // reddish purple
	{"#e69f00", "#d55e00"}, // orange, vermilion
	{"#56b4e9", "#f0e442"}, // sky blue, yellow
	{"#1b1f24", "#e6e8eb"}, // ink
}

// dashes tell lines apart without colour.
var dashes = []string{"", "7 4", "2 3.5", "10 3 2 3", "14 4", "4 2.5", "8 3 2 3 2 3"}

// Paper and ink of figures and pages.
const (
	inkLight, inkDark     = "#1b1f24", "#e6e8eb"
	softLight, softDark   = "#5b6570", "#9aa4ae"
	gridLight, gridDark   = "#e3e6ea", "#2c323a"
	paperLight, paperDark = "#ffffff", "#15181c"
	fontStack             = `system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif`
)

// Style is the style sheet that all figures share. It uses plain colours in
// place of CSS variables, which many drawing programs do not know.
func Style() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".wl{max-width:100%%;height:auto}.wl text{font:12px %s;fill:%s;font-variant-numeric:tabular-nums}", fontStack, inkLight)
	b.WriteString(".wl .tt{font-size:15px;font-weight:600}.wl .pt{font-weight:600}.wl .sm{font-size:11px}.wl .c{fill:none}")
	b.WriteString(".wl .ln{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}.wl .th{fill:none;stroke-width:1.1;stroke-linejoin:round}")
	b.WriteString(".wl .bd{opacity:.16;stroke:none}.wl .wk{fill:none;stroke-width:1.4}.wl .raw{opacity:.55;stroke-width:1.2;fill:none}.wl .lb{font-weight:600}")
	b.WriteString(".wl .fn{opacity:.62}")
	b.WriteString(theme(false))
	b.WriteString("@media screen and (prefers-color-scheme:dark){" + theme(true) + "}")
	return b.String()
}

// theme writes the colours of one paper.
func theme(dark bool) string {
	pick := func(light, darkColour string) string {
		if dark {
			return darkColour
		}
		return light
	}
	ink, soft := pick(inkLight, inkDark), pick(softLight, softDark)
	grid, paper := pick(gridLight, gridDark), pick(paperLight, paperDark)
	var b strings.Builder
	fmt.Fprintf(&b, ".wl text{fill:%s}.wl .s{fill:%s}.wl .g{stroke:%s}.wl .ax{stroke:%s;fill:none}", ink, soft, grid, soft)
	fmt.Fprintf(&b, ".wl .wu{fill:%s;opacity:.55}.wl .no{fill:%s;stroke:%s;stroke-width:1.5}.wl .nr{fill:%s;stroke:%s}", grid, paper, soft, grid, soft)
	fmt.Fprintf(&b, ".wl .lk{fill:none;stroke:%s;stroke-width:1.5}.wl .em{fill:none;stroke:%s;stroke-width:3}.wl .bg{fill:%s;stroke:none}.wl text.bt{fill:%s}",
		soft, pick(palette[0].light, palette[0].dark), pick(palette[0].light, palette[0].dark), paper)
	for i, c := range palette {
		v := pick(c.light, c.dark)
		fmt.Fprintf(&b, ".wl .l%d{stroke:%s}.wl .f%d,.wl text.f%d{fill:%s}", i, v, i, i, v)
	}
	for i, d := range dashes {
		if d != "" && !dark {
			fmt.Fprintf(&b, ".wl .d%d{stroke-dasharray:%s}", i, d)
		}
	}
	return b.String()
}

// classes of series i, for strokes and fills.
func strokeClass(i int) string { return fmt.Sprintf("l%d", i%len(palette)) }
func fillClass(i int) string   { return fmt.Sprintf("f%d", i%len(palette)) }

// dashClass differs from the first line's even when colours repeat.
func dashClass(i int) string {
	return fmt.Sprintf("d%d", (i+i/len(palette))%len(dashes))
}
