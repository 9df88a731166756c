package lang

import (
	"time"

	"github.com/hashicorp/hcl/v2"
)

// smokeValues is the attribute variables of the smoke block, where smoke was
// asked for. It is evaluated before variables have values, so it is constant.
func (l *loader) smokeValues() hcl.Expression {
	if !l.opts.Smoke {
		return nil
	}
	for _, b := range l.doc.experiment.Body.Blocks {
		a := b.Body.Attributes["variables"]
		if b.Type != "smoke" || a == nil {
			continue
		}
		if u := usesOf(a.Expr, nil); len(u.refs) > 0 {
			l.report(fault(u.refs[0].at, "Value is not constant", "Values of variables for smoke refer to nothing: they are known before everything else."))
			return nil
		}
		return a.Expr
	}
	return nil
}

// settle evaluates the settings of the experiment, with overrides: flags
// before smoke before the file.
func (l *loader) settle() {
	x := l.doc.experiment
	var all experimentBlock
	ctx := l.steadyContext()
	l.decodeExperiment(ctx, &all)
	l.settings = all.experimentSettings
	s, r := &l.settings, l.result
	if l.opts.Smoke {
		l.smoke = all.Smoke
		if l.smoke == nil {
			l.short, s.Repetitions = true, 1
		}
	}
	if l.smoke != nil {
		if l.smoke.Repetitions != nil {
			s.Repetitions = *l.smoke.Repetitions
		}
		r.SmokeClaims = l.smoke.Claims
	}
	if l.opts.Repetitions != 0 {
		s.Repetitions = l.opts.Repetitions
	}
	if l.opts.Seed != nil {
		s.Seed = *l.opts.Seed
	}
	if l.opts.Substrate != "" {
		s.Substrate = l.opts.Substrate
	}
	if s.Title == "" {
		s.Title = x.Labels[0]
	}
	if s.Repetitions < 1 || s.Repetitions > 1_000_000 {
		l.sink.add(fault(l.settingRange("repetitions"), "Bad value of repetitions", "It must be between 1 and 1000000, not %d.", s.Repetitions))
		s.Repetitions = 1
	}
	l.checkSubstrate()
	r.Name, r.Title, r.Substrate = x.Labels[0], s.Title, s.Substrate
	r.Repetitions, r.Seed = s.Repetitions, s.Seed
}

// decodeExperiment decodes the whole experiment block, but leaves the mistakes
// of timing attributes to the points, where they have their values.
func (l *loader) decodeExperiment(ctx *hcl.EvalContext, all *experimentBlock) {
	block := l.doc.experiment.AsHCLBlock()
	d := newDecoder(l.files, ctx)
	d.block(block, all)
	for _, x := range d.diags {
		if !l.inTiming(x) {
			l.sink.add(x)
		}
	}
}

func (l *loader) inTiming(x *hcl.Diagnostic) bool {
	if x.Subject == nil {
		return false
	}
	for _, name := range schemaOf(timingType).names(roleAttribute) {
		if a := l.doc.experiment.Body.Attributes[name]; a != nil && a.SrcRange.Overlaps(*x.Subject) {
			return true
		}
	}
	return false
}

// settingRange is where an attribute of the experiment or its smoke block was
// written, else the block's header.
func (l *loader) settingRange(name string) hcl.Range {
	for _, b := range l.doc.experiment.Body.Blocks {
		if a := b.Body.Attributes[name]; b.Type == "smoke" && l.opts.Smoke && a != nil {
			return a.Expr.Range()
		}
	}
	if a := l.doc.experiment.Body.Attributes[name]; a != nil {
		return a.Expr.Range()
	}
	return l.doc.experiment.DefRange()
}

// checkSubstrate refuses what this version cannot run on.
func (l *loader) checkSubstrate() {
	at := l.settingRange("substrate")
	switch l.settings.Substrate {
	case "namespace":
	case "virtual", "physical":
		l.sink.add(fault(at, "Not available: substrate "+l.settings.Substrate, "This version runs on the substrate \"namespace\" only."))
	default:
		l.sink.add(fault(at, "Unknown substrate "+l.settings.Substrate, "%s", remedy(l.settings.Substrate, "substrates", []string{"namespace", "virtual", "physical"})))
	}
}

// checkEmulation refuses a backend that this version does not have.
func checkEmulation(name string, at hcl.Range) *hcl.Diagnostic {
	switch name {
	case "auto", "software":
		return nil
	case "kernel":
		return fault(at, "Not available: emulation kernel", "This version enforces impairments with the backend \"software\" only; \"auto\" chooses it.")
	}
	return fault(at, "Unknown emulation "+name, "%s", remedy(name, "backends", []string{"auto", "software", "kernel"}))
}

// What --smoke makes of an experiment that does not say.
const (
	smokeDuration = 2 * time.Second
	smokeWarmup   = time.Second
)

// timing evaluates duration, warmup and emulation in a point.
func (l *loader) timing(ctx *hcl.EvalContext) experimentTiming {
	var t experimentTiming
	d := newDecoder(l.files, ctx)
	d.partial(l.doc.experiment.Body, l.doc.experiment.DefRange(), &t)
	l.sink.add(d.diags...)
	if l.smoke != nil {
		override(&t.Duration, l.smoke.Duration)
		override(&t.Warmup, l.smoke.Warmup)
	}
	if l.short {
		t.Duration, t.Warmup = min(t.Duration, smokeDuration), min(t.Warmup, smokeWarmup)
	}
	override(&t.Duration, l.opts.Duration)
	override(&t.Warmup, l.opts.Warmup)
	if !d.diags.HasErrors() && t.Duration <= 0 {
		l.sink.add(fault(l.settingRange("duration"), "Bad value of duration", "It must be longer than 0s: metrics cover this time."))
	}
	if t.Emulation != "" {
		l.sink.add(checkEmulation(t.Emulation, l.settingRange("emulation")))
	}
	return t
}

func override(dst, by *time.Duration) {
	if by != nil {
		*dst = *by
	}
}
