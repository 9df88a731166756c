package lang

import (
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// document is the outcome of reading: the blocks of all files, sorted by what
// is done with them, bodies not yet evaluated.
type document struct {
	experiment *hclsyntax.Block
	variables  []*hclsyntax.Block
	locals     []*hclsyntax.Block
	sweep      *hclsyntax.Block
	excludes   []*hclsyntax.Block
	// setup holds what is evaluated in every point (topology, node, link,
	// workload, instrument, and dynamic blocks of them); judges holds check,
	// claim and figure, evaluated once.
	setup, judges []*hclsyntax.Block
}

// blockType is a top-level block.
type blockType struct {
	name   string
	labels []string // names of the labels, for messages
	group  string   // "setup" and "judge" blocks may be dynamic
	doc    string
}

var blockTypes = []blockType{
	{"experiment", []string{"NAME"}, "", "The experiment itself; exactly one."},
	{"variable", []string{"NAME"}, "", "A value that the caller may set: var.NAME."},
	{"locals", nil, "", "Named expressions, in any order: local.NAME."},
	{"sweep", nil, "", "Lists of values; every combination is a point: sweep.NAME."},
	{"exclude", nil, "", "Takes points out of the sweep."},
	{"topology", []string{"KIND", "NAME"}, "setup", "A ready graph of nodes and links."},
	{"node", []string{"NAME"}, "setup", "One network namespace."},
	{"link", []string{"NAME"}, "setup", "Joins two nodes; forward is from the first to the second."},
	{"workload", []string{"KIND", "NAME"}, "setup", "Drives the network, or one node."},
	{"instrument", []string{"KIND", "NAME"}, "setup", "Measures the lab during a run."},
	{"check", []string{"NAME"}, "judge", "Judges each valid run."},
	{"claim", []string{"NAME"}, "judge", "Judges the experiment over all valid runs."},
	{"figure", []string{"NAME"}, "judge", "Draws metrics."},
}

// later are blocks of the language that this version cannot do.
var later = map[string]string{
	"fidelity": "Validating the emulation against a reference is not available in this version. Remove the block; the calibration before each point stays.",
	"schedule": "Changing a link over time is not available in this version. Remove the block; sweep the attribute to compare fixed values.",
}

func findBlockType(name string) *blockType {
	for i := range blockTypes {
		if blockTypes[i].name == name {
			return &blockTypes[i]
		}
	}
	return nil
}

// read sorts the blocks of all files and tells which are unknown or misplaced.
func (l *loader) read() {
	for _, name := range l.files.names {
		parsed := l.files.parsed[name]
		if parsed == nil {
			continue
		}
		body, ok := parsed.Body.(*hclsyntax.Body)
		if !ok {
			continue
		}
		for _, a := range sortedAttributes(body.Attributes) {
			l.sink.add(l.strayAttribute(a))
		}
		for _, b := range body.Blocks {
			l.sortBlock(b)
		}
	}
	if l.doc.experiment == nil && !l.sink.hasErrors() {
		l.sink.add(globalFault("No experiment block", "A file describes one experiment: start it with experiment \"NAME\" { duration = \"10s\" }."))
	}
}

func (l *loader) strayAttribute(a *hclsyntax.Attribute) *hcl.Diagnostic {
	if t := findBlockType(a.Name); t != nil {
		return fault(a.NameRange, "Not a block", "%s is a block: write %s { … } without the equals sign.", a.Name, header(*t))
	}
	return fault(a.NameRange, "Attribute outside a block", "Attributes stand in blocks. Values to be used in several places go into locals { %s = … }.", a.Name)
}

func header(t blockType) string {
	s := t.name
	for _, x := range t.labels {
		s += ` "` + x + `"`
	}
	return s
}

func (l *loader) sortBlock(b *hclsyntax.Block) {
	d := &l.doc
	if b.Type == "dynamic" {
		l.sortDynamic(b)
		return
	}
	t := findBlockType(b.Type)
	if t == nil {
		l.sink.add(unknownBlock(b))
		return
	}
	if len(b.Labels) != len(t.labels) {
		l.sink.add(fault(b.DefRange(), "Wrong number of labels", "It is written %s { … }.", header(*t)))
		return
	}
	switch {
	case b.Type == "experiment" && d.experiment != nil, b.Type == "sweep" && d.sweep != nil:
		first := d.experiment
		if b.Type == "sweep" {
			first = d.sweep
		}
		l.sink.add(fault(b.DefRange(), "Second "+b.Type+" block", "There is one already at %s. Put all of it into one block.", place(first.DefRange())))
	case b.Type == "experiment":
		d.experiment = b
		if !nameOK(b.Labels[0]) {
			l.sink.add(badName(b.LabelRanges[0], b.Labels[0], "experiment"))
		}
	case b.Type == "variable":
		d.variables = append(d.variables, b)
	case b.Type == "locals":
		d.locals = append(d.locals, b)
	case b.Type == "sweep":
		d.sweep = b
	case b.Type == "exclude":
		d.excludes = append(d.excludes, b)
	case t.group == "setup":
		d.setup = append(d.setup, b)
	default:
		d.judges = append(d.judges, b)
	}
}

func (l *loader) sortDynamic(b *hclsyntax.Block) {
	if len(b.Labels) != 1 {
		l.sink.add(fault(b.DefRange(), "Wrong number of labels", `It is written dynamic "TYPE" { for_each = … labels = [ … ] content { … } }.`))
		return
	}
	t := findBlockType(b.Labels[0])
	switch {
	case t == nil || t.group == "":
		l.sink.add(fault(b.LabelRanges[0], "Cannot be dynamic", "Dynamic blocks at the top of a file make %s.", quoted(dynamicTypes(), "or")))
	case t.group == "setup":
		l.doc.setup = append(l.doc.setup, b)
	default:
		l.doc.judges = append(l.doc.judges, b)
	}
}

func dynamicTypes() []string {
	var out []string
	for _, t := range blockTypes {
		if t.group != "" {
			out = append(out, t.name)
		}
	}
	return out
}

func unknownBlock(b *hclsyntax.Block) *hcl.Diagnostic {
	if why := later[b.Type]; why != "" {
		return fault(b.DefRange(), "Not available: "+b.Type, "%s", why)
	}
	known := []string{"dynamic"}
	for _, t := range blockTypes {
		known = append(known, t.name)
	}
	return fault(b.TypeRange, "Unknown block "+b.Type, "%s", remedy(b.Type, "blocks", known))
}

// identifier is a name that may stand after a dot in an expression; a node or
// experiment may also begin with a digit.
var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)
	plainName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,62}$`)
)

func nameOK(name string) bool { return plainName.MatchString(name) }

func badName(at hcl.Range, name, what string) *hcl.Diagnostic {
	return fault(at, "Bad name", "The name of %s has letters, digits, \"-\" and \"_\", at most 63: not %q.", article(what), name)
}

func badIdentifier(at hcl.Range, name, what string) *hcl.Diagnostic {
	return fault(at, "Bad name", "The name of %s begins with a letter or \"_\" and has letters, digits, \"-\" and \"_\", at most 63, so that expressions can name it: not %q.", article(what), name)
}

// article puts "a" or "an" in front of a noun.
func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

// place is file:line:column of a range's start.
func place(r hcl.Range) string {
	return r.Filename + ":" + itoa(r.Start.Line) + ":" + itoa(r.Start.Column)
}

// sortedAttributes returns attributes in the order of the text.
func sortedAttributes(attrs hclsyntax.Attributes) []*hclsyntax.Attribute {
	out := make([]*hclsyntax.Attribute, 0, len(attrs))
	for _, a := range attrs {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hclsyntax.Attribute) int {
		if c := strings.Compare(a.SrcRange.Filename, b.SrcRange.Filename); c != 0 {
			return c
		}
		return a.SrcRange.Start.Byte - b.SrcRange.Start.Byte
	})
	return out
}
