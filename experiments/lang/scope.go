package lang

import (
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// scope is what expressions of a kind of block may name.
type scope struct {
	where string   // for messages: "a claim"
	roots []string // var, local, …
	// steady forbids locals that depend on the point.
	steady bool
	// inner is the scope of an aggregate's arguments, nil without aggregates.
	inner *scope
}

var (
	scopeVariable = scope{where: "a variable's validation", roots: []string{"var", "host"}, steady: true}
	scopeFile     = scope{where: "a setting of the whole experiment", roots: []string{"var", "local", "host"}, steady: true}
	scopeLocals   = scope{where: "locals", roots: []string{"var", "local", "host", "sweep", "run"}}
	scopePoint    = scope{where: "a point", roots: []string{"var", "local", "host", "sweep"}}
	scopeGraph    = scope{where: "a topology", roots: []string{"var", "local", "host", "sweep", "run"}}
	scopeSetup    = scope{where: "a workload or instrument", roots: []string{"var", "local", "host", "sweep", "run", "node"}}
	scopeRun      = scope{where: "a check", roots: []string{"var", "local", "host", "sweep", "run", "result"}}
	scopeClaim    = scope{where: "a claim", roots: []string{"var", "local", "host"}, steady: true, inner: &scopeRun}
	scopeJudged   = scope{where: "a claim's condition", roots: []string{"var", "local", "host", "value"}, steady: true, inner: &scopeRun}
)

// roots are all first names of references, with where they have a meaning.
var roots = map[string]string{
	"var":    "",
	"local":  "",
	"host":   "",
	"sweep":  "A point of the sweep is known in exclude, topology, node, link, workload, instrument and check blocks, in the experiment's duration, warmup and emulation, and inside the aggregates of a claim.",
	"run":    "A run is known in topology, node, link, workload, instrument and check blocks and inside the aggregates of a claim.",
	"node":   "Addresses of nodes are known in workload and instrument blocks.",
	"result": "Results exist after a run: in check blocks, and in claims inside an aggregate such as median(result.NAME.METRIC).",
	"value":  "It is the value of a claim, known in that claim's condition.",
}

var runNames = []string{"repetition", "seed"}

// checkUses tells what an expression may not name where it stands.
func (l *loader) checkUses(u uses, sc scope) {
	for _, at := range u.huge {
		l.report(fault(at, "Number too large", "No quantity of an experiment has more than 300 digits."))
	}
	for _, r := range u.refs {
		here := sc
		if r.inner && sc.inner != nil {
			here = *sc.inner
		}
		l.report(l.checkRef(r, here))
		if r.root == "host" {
			l.useHost(r.first())
		}
	}
	known := l.functionNames()
	for _, c := range u.calls {
		if _, ok := known[c.name]; !ok {
			l.report(unknownFunction(c, slices.Sorted(maps.Keys(known))))
		}
	}
}

// report adds a static mistake and silences its echoes.
func (l *loader) report(d *hcl.Diagnostic) {
	if d == nil {
		return
	}
	l.sink.add(d)
	l.sink.quiet = append(l.sink.quiet, *d.Subject)
}

func unknownFunction(c call, known []string) *hcl.Diagnostic {
	if c.name == "trace" {
		return fault(c.at, "Not available: trace", "Rate traces are not available in this version. Give the link a fixed rate, or sweep over several.")
	}
	return fault(c.at, "Unknown function "+c.name, "%s", remedy(c.name, "functions", known))
}

func (l *loader) checkRef(r ref, sc scope) *hcl.Diagnostic {
	meaning, known := roots[r.root]
	if !known {
		return unknownRoot(r, sc)
	}
	if !slices.Contains(sc.roots, r.root) {
		return fault(r.at, r.root+" has no value here", "Not in %s. %s", sc.where, meaning)
	}
	names := l.scopeNames(r.root)
	if names == nil || r.first() == "" {
		return nil
	}
	if !slices.Contains(names, r.first()) {
		return fault(r.stepRange(0), "Unknown reference "+r.root+"."+r.first(), "%s", unknownMember(r, names))
	}
	if r.root == "local" && sc.steady && l.locals[r.first()].deps.onPoint() {
		return fault(r.at, "local."+r.first()+" has no value here", "It depends on sweep or run, which have no value in %s. %s", sc.where, roots["sweep"])
	}
	return nil
}

func unknownRoot(r ref, sc scope) *hcl.Diagnostic {
	hint := ""
	if len(r.path) == 0 {
		hint = " Text stands in quotes: \"" + r.root + "\"."
	}
	return fault(r.at, "Unknown reference "+r.root, "%s%s", remedy(r.root, "names here", sc.roots), hint)
}

func unknownMember(r ref, names []string) string {
	what := map[string]string{"var": "variables", "local": "locals", "sweep": "sweep variables", "host": "host facts", "run": "names of a run"}[r.root]
	s := remedy(r.first(), what, names)
	switch {
	case r.root == "var":
		s += " Declare it with variable \"" + r.first() + "\" { default = … }."
	case r.root == "local":
		s += " Define it with locals { " + r.first() + " = … }."
	}
	return s
}

// scopeNames are the names after a root; nil where they are checked later.
func (l *loader) scopeNames(root string) []string {
	switch root {
	case "var":
		return notNil(slices.Sorted(maps.Keys(l.variables)))
	case "local":
		return notNil(slices.Sorted(maps.Keys(l.locals)))
	case "sweep":
		if !l.sweepKnown {
			return nil
		}
		return notNil(slices.Clone(l.sweepNames()))
	case "host":
		return hostNames
	case "run":
		return runNames
	}
	return nil
}

func notNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// checkReferences tells all mistakes of reference of a file at once.
func (l *loader) checkReferences() {
	if x := l.doc.experiment; x != nil {
		l.checkExperimentRefs(x)
	}
	for _, v := range l.doc.variables {
		for _, b := range v.Body.Blocks {
			l.checkUses(usesOfBlock(b, nil), scopeVariable)
		}
	}
	for _, x := range l.locals {
		l.checkUses(x.uses, scopeLocals)
	}
	if l.doc.sweep != nil {
		l.checkUses(usesOfBlock(l.doc.sweep, nil), scopeFile)
	}
	for _, b := range l.doc.excludes {
		l.checkUses(usesOfBlock(b, nil), scopePoint)
	}
	for _, b := range l.doc.setup {
		sc := scopeSetup
		if t := blockName(b); t == "topology" || t == "node" || t == "link" {
			sc = scopeGraph
		}
		l.checkUses(usesOfBlock(b, nil), sc)
	}
	for _, b := range l.doc.judges {
		l.checkJudge(b)
	}
}

func (l *loader) checkExperimentRefs(x *hclsyntax.Block) {
	timing := schemaOf(timingType).names(roleAttribute)
	for _, a := range sortedAttributes(x.Body.Attributes) {
		sc := scopeFile
		if slices.Contains(timing, a.Name) {
			sc = scopePoint
		}
		l.checkUses(usesOf(a.Expr, nil), sc)
	}
	for _, b := range x.Body.Blocks {
		l.checkUses(usesOfBlock(b, nil), scopeFile)
	}
}

// checkJudge checks a check, claim or figure, or a dynamic block of them.
func (l *loader) checkJudge(b *hclsyntax.Block) {
	switch blockName(b) {
	case "check":
		l.checkUses(usesOfBlock(b, nil), scopeRun)
	case "claim":
		l.checkClaimRefs(b)
	default:
		l.checkUses(usesOfBlock(b, nil), scopeFile)
	}
}

func (l *loader) checkClaimRefs(b *hclsyntax.Block) {
	if b.Type == "dynamic" {
		l.checkUses(usesOfBlock(b, aggregateNames), scopeJudged)
		return
	}
	for _, a := range sortedAttributes(b.Body.Attributes) {
		sc := scopeFile
		switch a.Name {
		case "condition":
			sc = scopeJudged
		case "value":
			sc = scopeClaim
		}
		l.checkUses(usesOf(a.Expr, aggregateNames), sc)
	}
}

// blockName is the type of block, for a dynamic block that of what it makes.
func blockName(b *hclsyntax.Block) string {
	if b.Type == "dynamic" && len(b.Labels) > 0 {
		return strings.TrimSpace(b.Labels[0])
	}
	return b.Type
}
