package figure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"wirelab/results"
)

// Topology draws a network: trees from left to right along their longest path,
// other graphs on a circle, with every impaired link numbered and, below, what
// was asked of it and what calibration found. Graphs of more than 60 nodes are
// summed up in words.
func Topology(d *results.Diagram) []byte {
	c := &canvas{}
	const title = "Topology"
	if d == nil || len(d.Nodes) == 0 {
		c.text(0, 18, "s", "start", "The experiment needs no network.")
		return c.document("topology", title, "No network.", figureWidth, 30)
	}
	summary := sumUp(d)
	impaired := slices.DeleteFunc(slices.Clone(d.Links), func(l results.LinkRecord) bool { return !isImpaired(l) })
	if len(d.Nodes) > maxDrawn {
		c.rect(0.5, 0.5, figureWidth-1, 54, "no")
		c.text(figureWidth/2, 32, "", "middle", summary+".")
		return c.document("topology", title, summary, figureWidth, listLinks(c, impaired, 82))
	}
	bottom := drawGraph(c, d)
	return c.document("topology", title, summary+". "+linkWords(impaired), figureWidth, listLinks(c, impaired, bottom+22))
}

func isImpaired(l results.LinkRecord) bool { return l.Backend != "" && l.Backend != "none" }

// sumUp counts nodes by kind.
func sumUp(d *results.Diagram) string {
	kinds := map[string]int{}
	for _, n := range d.Nodes {
		kinds[n.Kind]++
	}
	var parts []string
	for _, k := range []string{"host", "router", "bridge"} {
		if kinds[k] > 0 {
			parts = append(parts, plural(kinds[k], k))
		}
	}
	n := 0
	for _, l := range d.Links {
		if isImpaired(l) {
			n++
		}
	}
	return fmt.Sprintf("%s, %s, %d of them impaired", strings.Join(parts, ", "), plural(len(d.Links), "link"), n)
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// drawGraph draws nodes and links and returns the bottom.
func drawGraph(c *canvas, d *results.Diagram) float64 {
	g := newGraph(d)
	places, width := g.layout()
	const margin, top = 62.0, 34.0
	stepX := 150.0
	if width > 0 {
		stepX = min(190, (figureWidth-2*margin)/width)
	}
	stepY := 62.0
	shift := (figureWidth - width*stepX) / 2
	at := func(i int) (x, y float64) { return shift + places[i].x*stepX, top + places[i].y*stepY }
	number := 0
	type badge struct {
		x, y float64
		n    int
	}
	var badges []badge
	drawn := map[[2]int]int{}
	for i, l := range d.Links {
		a, b := g.links[i][0], g.links[i][1]
		x1, y1 := at(a)
		x2, y2 := at(b)
		key := [2]int{min(a, b), max(a, b)}
		bend := 22 * float64((drawn[key]+1)/2) * float64(1-2*(drawn[key]%2)) // parallel links
		drawn[key]++
		mx, my := (x1+x2)/2, (y1+y2)/2
		if length := math.Hypot(x2-x1, y2-y1); length > 0 && bend != 0 {
			mx, my = mx-(y2-y1)/length*bend, my+(x2-x1)/length*bend
		}
		class := "lk"
		if isImpaired(l) {
			class = "em"
			number++
			badges = append(badges, badge{mx, my, number})
		}
		c.tooltip(l.Name+": "+words(l), func() {
			c.path(fmt.Sprintf("M%s %sQ%s %s %s %s", coord(x1), coord(y1), coord(2*mx-(x1+x2)/2), coord(2*my-(y1+y2)/2), coord(x2), coord(y2)), class)
		})
	}
	for _, b := range badges {
		c.circle(b.x, b.y, 10, "bg")
		c.text(b.x, b.y+4, "bt lb", "middle", fmt.Sprint(b.n))
	}
	bottom := top
	slot := max(stepX, 44)
	for _, n := range d.Nodes {
		i := g.index[n.Name]
		x, y := at(i)
		drawNode(c, n, x, y)
		g.nameNode(c, i, places, x, y, slot)
		bottom = max(bottom, y+30)
	}
	return bottom
}

// nameNode writes a node's name below it; above or beside it where a link
// leaves downwards or another node stands close.
func (g *graph) nameNode(c *canvas, i int, places []place, x, y, slot float64) {
	const near = 0.6 // rows
	up, down, crowded := false, false, false
	for _, n := range g.near[i] {
		if dx, dy := places[n].x-places[i].x, places[n].y-places[i].y; math.Abs(dx) < 0.25 {
			up, down = up || dy < 0, down || dy > 0
		}
	}
	for j, p := range places {
		if j != i && math.Abs(p.x-places[i].x) < 0.25 && math.Abs(p.y-places[i].y) < near {
			crowded = true
		}
	}
	switch name := clip(g.names[i], slot); {
	case (crowded || down && up) && len(g.near[i]) > 0 && places[g.near[i][0]].x > places[i].x:
		c.text(x-14, y+4, "sm", "end", name)
	case crowded || down && up:
		c.text(x+14, y+4, "sm", "start", name)
	case down:
		c.text(x, y-16, "sm", "middle", name)
	default:
		c.text(x, y+25, "sm", "middle", name)
	}
}

// drawNode draws a host as a disc, a router as a square, a bridge as a bar.
func drawNode(c *canvas, n results.DiagramNode, x, y float64) {
	c.tooltip(strings.TrimSpace(n.Kind+" "+n.Name+" "+strings.Join(n.Addresses, " ")), func() {
		switch n.Kind {
		case "router":
			c.rect(x-9, y-9, 18, 18, "no")
			c.path(fmt.Sprintf("M%s %sl10 10m0 -10l-10 10", coord(x-5), coord(y-5)), "ax")
		case "bridge":
			c.rect(x-13, y-6, 26, 12, "no")
		default:
			c.circle(x, y, 9, "no")
		}
	})
}

// maxListed bounds the links that are described below a drawing; more than
// fewListed get one line each.
const maxListed, fewListed = 24, 4

// listLinks describes impaired links by number and returns the bottom.
func listLinks(c *canvas, links []results.LinkRecord, top float64) float64 {
	y := top
	for i, l := range links {
		if i == maxListed {
			c.text(0, y+4, "s", "start", fmt.Sprintf("and %d more impaired links", len(links)-i))
			return y + 20
		}
		c.circle(10, y, 9, "bg")
		c.text(10, y+4, "bt lb", "middle", fmt.Sprint(i+1))
		name := clip(l.Name+", "+l.Between[0]+" → "+l.Between[1], figureWidth-40)
		c.text(28, y+4, "lb", "start", name)
		if len(links) > fewListed {
			x := 28 + boldWidth(name) + 12
			c.text(x, y+4, "s", "start", clip(words(l), figureWidth-x))
			y += 23
			continue
		}
		y += 18
		c.text(28, y+4, "s", "start", clip("asked: "+asked(l), figureWidth-30))
		if l.Calibration != nil {
			y += 17
			c.text(28, y+4, "s", "start", clip("measured: "+Achieved(l.Calibration), figureWidth-30))
		}
		y += 26
	}
	return y
}

// Achieved says in words what calibration found.
func Achieved(k *results.Calibration) string {
	s := results.FormatValue(k.RTTMeasuredS, "s") + " RTT"
	switch {
	case k.ForwardBPS > 0 && k.ReverseBPS > 0:
		s += fmt.Sprintf(", %s forward, %s back", results.FormatValue(k.ForwardBPS, "bit/s"), results.FormatValue(k.ReverseBPS, "bit/s"))
	case k.ForwardBPS > 0:
		s += ", " + results.FormatValue(k.ForwardBPS, "bit/s") + " forward"
	case k.ReverseBPS > 0:
		s += ", " + results.FormatValue(k.ReverseBPS, "bit/s") + " back"
	}
	if k.OK {
		return s + " (within tolerance)"
	}
	return s + " (NOT as asked: " + k.Reason + ")"
}

// asked says what both directions of a link were asked to do.
func asked(l results.LinkRecord) string {
	switch {
	case l.Reverse.Text == "":
		return l.Forward.Text
	case l.Reverse.Text == l.Forward.Text:
		return l.Forward.Text + ", both ways"
	}
	return l.Forward.Text + "; back: " + l.Reverse.Text
}

// words describes a link for a tooltip.
func words(l results.LinkRecord) string {
	if !isImpaired(l) {
		return "no impairment"
	}
	s := asked(l)
	if l.Calibration != nil {
		s += "; measured " + Achieved(l.Calibration)
	}
	return s
}

func linkWords(links []results.LinkRecord) string {
	var parts []string
	for i, l := range links {
		if i == maxListed {
			break
		}
		parts = append(parts, l.Name+": "+words(l)+".")
	}
	return strings.Join(parts, " ")
}
