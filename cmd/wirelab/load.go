package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"wirelab/emul"
	"wirelab/experiments"
	"wirelab/experiments/lang"
	"wirelab/experiments/library"
	"wirelab/experiments/plan"
	"wirelab/results"
	"wirelab/results/store"
)

// loadFlags are the flags that change what a file says.
type loadFlags struct {
	smoke       bool
	substrate   string
	vars        []string
	varFiles    []string
	only        string
	repetitions int
	seed        uint64
	seedSet     bool
	yes         bool
}

func (f *loadFlags) add(set *pflag.FlagSet) {
	set.BoolVar(&f.smoke, "smoke", false, "run the smoke size (without a smoke block: one repetition of 2 s); checks are told and decide nothing, claims only where the file says so")
	set.StringVar(&f.substrate, "substrate", "", "run on another substrate than the file says")
	set.StringArrayVar(&f.vars, "var", nil, "set a variable (`k=v`); may be repeated")
	set.StringArrayVar(&f.varFiles, "var-file", nil, "read variables from a `FILE` of k = v lines; may be repeated")
	set.StringVar(&f.only, "only", "", "make only one `POINT` of the sweep, such as buffer=1")
	set.Var((*positive)(&f.repetitions), "repetitions", "`N` repetitions of each point, instead of the file's")
	set.Uint64Var(&f.seed, "seed", 0, "seed of the experiment, instead of the file's")
	set.BoolVar(&f.yes, "yes", false, "go on where wirelab would ask: a very large sweep")
}

// positive is a flag that takes a whole number from 1; 0 is not given.
type positive int

// Set implements pflag.Value.
func (p *positive) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return errors.New("it must be a whole number from 1")
	}
	*p = positive(n)
	return nil
}

// String implements pflag.Value.
func (p *positive) String() string { return strconv.Itoa(int(*p)) }

// Type implements pflag.Value.
func (p *positive) Type() string { return "int" }

// changed lists the flags that were given, to be kept in the manifest.
func changed(set *pflag.FlagSet) []string {
	var out []string
	keep := map[string]bool{"smoke": true, "substrate": true, "var": true, "var-file": true, "only": true,
		"repetitions": true, "seed": true, "yes": true}
	set.Visit(func(f *pflag.Flag) {
		if !keep[f.Name] {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				out = append(out, "--"+f.Name+"="+v)
			}
			return
		}
		out = append(out, "--"+f.Name+"="+f.Value.String())
	})
	return out
}

// options turns the flags into the language's.
func (f *loadFlags) options(host results.Host, backends []emul.Backend) (lang.Options, error) {
	o := lang.Options{
		Smoke: f.smoke, Substrate: f.substrate, VarFiles: f.varFiles, Only: f.only,
		Repetitions: f.repetitions, Yes: f.yes, Backends: backends, Variables: map[string]string{},
		Host: lang.Host{Cores: host.Cores, Kernel: host.Kernel, OS: runtime.GOOS, Arch: runtime.GOARCH, MemoryBytes: host.MemoryBytes, NICs: nics()},
	}
	if f.seedSet {
		o.Seed = &f.seed
	}
	for _, v := range f.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || strings.TrimSpace(name) == "" {
			return o, fmt.Errorf("--var %q: write it as name=value", v)
		}
		o.Variables[strings.TrimSpace(name)] = value
	}
	return o, nil
}

// nics lists the physical network interfaces of the host.
func nics() []string {
	devices, err := filepath.Glob("/sys/class/net/*/device")
	if err != nil {
		return nil
	}
	var out []string
	for _, d := range devices {
		out = append(out, filepath.Base(filepath.Dir(d)))
	}
	return out
}

// source is what a verb's argument names: files, a ready experiment, or a run
// directory to go on with.
type source struct {
	arg    string
	paths  []string
	fsys   fs.FS
	resume string
}

// resolve finds out what an argument names.
func resolve(arg string) (source, error) {
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		if _, err := os.Stat(filepath.Join(arg, store.ManifestName)); err == nil {
			return source{arg: arg, resume: arg}, nil
		}
		return source{arg: arg, paths: []string{arg}}, nil
	case err == nil:
		return source{arg: arg, paths: []string{arg}}, nil
	case library.Has(arg):
		return source{arg: arg, paths: []string{arg + ".hcl"}, fsys: library.Files()}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return source{}, fmt.Errorf("read %s: %w", arg, err)
	}
	return source{}, fmt.Errorf("%q is no file, directory or ready experiment; ready ones are %s", arg, strings.Join(library.Names(), ", "))
}

// loaded is an experiment ready to run.
type loaded struct {
	source
	exp   *experiments.Experiment
	files *lang.Files
	plan  *plan.Plan
	host  results.Host
}

// read reads an experiment's files with the flags applied.
func read(src source, f *loadFlags, host results.Host, backends []emul.Backend) (*loaded, lang.Diagnostics, error) {
	o, err := f.options(host, backends)
	if err != nil {
		return nil, nil, exit(exitFile, err)
	}
	o.FS = src.fsys
	exp, files, diags := lang.Load(src.paths, o)
	return &loaded{source: src, exp: exp, files: files, host: host}, diags, nil
}

// load reads and plans an experiment and shows its diagnostics.
func load(s Streams, src source, f *loadFlags, host results.Host, backends []emul.Backend) (*loaded, error) {
	l, diags, err := read(src, f, host, backends)
	if err != nil {
		return nil, err
	}
	if err := showDiagnostics(s, diags); err != nil {
		return nil, err
	}
	l.plan = plan.New(l.exp)
	return l, nil
}

// showDiagnostics prints what was found in a file; errors end the verb.
func showDiagnostics(s Streams, diags lang.Diagnostics) error {
	width, _ := terminal(s.Err)
	if err := diags.WriteText(s.Err, width, colored(s.Err)); err != nil {
		return err
	}
	if diags.HasErrors() {
		return exit(exitFile, fmt.Errorf("%s; nothing was built", plural(diags.Count(lang.SeverityError), "error")))
	}
	return nil
}
