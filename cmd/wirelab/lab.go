package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"wirelab/emul/software"
	"wirelab/experiments"
	"wirelab/testbed"
)

// upWait bounds how long a lab may take to come up.
const upWait = 2 * time.Minute

func newUp(s Streams) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "up FILE|NAME|DIR",
		Short: "Build the network of an experiment and leave it standing",
		Long: `Build the network of one point of an experiment (the first, or --only POINT)
and leave it standing, with its impairments, until wirelab down.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.seedSet = cmd.Flags().Changed("seed")
			return up(cmd.Context(), s, args[0], &f, changed(cmd.Flags()))
		},
	}
	f.add(cmd.Flags())
	return cmd
}

// up checks the file here, where its author is, and starts the lab's owner.
func up(ctx context.Context, s Streams, arg string, f *loadFlags, given []string) error {
	l, err := loadArg(s, arg, f)
	if err != nil {
		return err
	}
	if _, err := labSetup(l.exp); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return exit(exitHost, errors.New("building a network needs root: run it with sudo"))
	}
	binary, err := os.Executable()
	if err != nil {
		return exit(exitHost, err)
	}
	words, err := os.CreateTemp("", "wirelab-lab-*.log")
	if err != nil {
		return exit(exitHost, err)
	}
	defer os.Remove(words.Name())
	defer words.Close()
	id := testbed.NewRunID()
	owner := exec.Command(binary, append([]string{"lab", id, arg}, given...)...)
	owner.Stdout, owner.Stderr = words, words
	wait, cancel := context.WithTimeout(ctx, upWait)
	defer cancel()
	lab, err := testbed.StartOwner(wait, owner, stateDir(), id)
	if ctx.Err() != nil {
		return exit(exitInterrupted, errors.Join(errors.New("interrupted; no lab is left"), downAgain(lab)))
	}
	if err != nil {
		said, _ := os.ReadFile(words.Name())
		return exit(exitHost, fmt.Errorf("%w: %s", err, strings.TrimSpace(string(said))))
	}
	if err := writeHosts(lab); err != nil {
		return exit(exitHost, err)
	}
	printLab(s, lab)
	labs, err := testbed.Labs(stateDir())
	if err == nil && len(labs) > 1 {
		fmt.Fprintf(s.Err, "next: wirelab exec --lab %s NODE -- COMMAND; wirelab down %s removes it (%d labs stand)\n", lab.ID, lab.ID, len(labs))
		return nil
	}
	fmt.Fprintf(s.Err, "next: wirelab exec NODE -- COMMAND; wirelab down removes it\n")
	return nil
}

// downAgain removes a lab that came up while it was no longer wanted.
func downAgain(lab *testbed.Lab) error {
	if lab == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), upWait)
	defer cancel()
	return lab.Down(ctx)
}

// labSetup is the setup that a lab of the experiment builds.
func labSetup(exp *experiments.Experiment) (*experiments.Setup, error) {
	if len(exp.Points) == 0 || exp.Points[0].Repetitions[0].Topology == nil {
		return nil, exit(exitFile, errors.New("the experiment has no topology to build"))
	}
	return &exp.Points[0].Repetitions[0], nil
}

// newLab is the hidden verb that builds a lab and holds it.
func newLab(s Streams) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:    "lab ID FILE|NAME|DIR",
		Short:  "Build a lab and hold it until terminated",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.seedSet = cmd.Flags().Changed("seed")
			return holdLab(cmd.Context(), s, args[0], args[1], &f)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func holdLab(ctx context.Context, s Streams, id, arg string, f *loadFlags) (err error) {
	l, err := loadArg(s, arg, f)
	if err != nil {
		return err
	}
	setup, err := labSetup(l.exp)
	if err != nil {
		return err
	}
	cores, release := claimCores()
	defer func() { err = errors.Join(err, release()) }()
	bed, err := testbed.Up(ctx, *setup.Topology, testbed.Options{
		RunID: id, Dir: stateDir(), Version: versionText(), Seed: setup.Seed, Backend: software.New(software.Options{Args: []string{"forward"}, Cores: cores, Log: s.Err}),
	})
	if err != nil {
		return exit(exitHost, err)
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	if session := bed.Session(); session != nil {
		if err := session.Arm(); err != nil {
			return exit(exitHost, err)
		}
	}
	return bed.Hold(ctx, l.exp.Title)
}

// printLab lists the nodes and links of a lab.
func printLab(s Streams, lab *testbed.Lab) {
	fmt.Fprintf(s.Out, "lab %s: %s\n", lab.ID, lab.Title)
	t := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	for _, n := range lab.Nodes {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", n.Name, n.Kind, strings.Join(n.Addresses, " "))
	}
	for _, l := range lab.Links {
		fmt.Fprintf(t, "  %s\tlink\t%s -> %s: %s\n", l.Name, l.A, l.B, l.Forward)
		fmt.Fprintf(t, "  \t\t%s -> %s: %s\n", l.B, l.A, l.Reverse)
	}
	// A failed write to a terminal has nothing to be done about.
	_ = t.Flush()
}

// hostsPath is the lab's hosts(5) file, so that its programs know the nodes by
// name; it goes with the lab's directory.
func hostsPath(id string) string { return filepath.Join(stateDir(), id, "hosts") }

func writeHosts(lab *testbed.Lab) error {
	text, err := os.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("name the nodes of the lab: %w", err)
	}
	var b strings.Builder
	b.Write(text)
	b.WriteString("\n")
	for _, n := range lab.Nodes {
		for _, a := range n.Addresses {
			ip, _, _ := strings.Cut(a, "/")
			fmt.Fprintf(&b, "%s %s\n", ip, n.Name)
		}
	}
	if err := os.WriteFile(hostsPath(lab.ID), []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("name the nodes of the lab: %w", err)
	}
	return nil
}

func newExec(s Streams) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:   "exec NODE -- COMMAND [ARG...]",
		Short: "Run a command in a node of a standing lab",
		Long: `Run a command in a node of a standing lab. It knows the nodes by name, and its
exit status is passed on.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return execIn(s, id, args[0], args[1:])
		},
	}
	cmd.Flags().StringVar(&id, "lab", "", "`ID` of the lab, where several stand")
	return cmd
}

func execIn(s Streams, id, node string, argv []string) error {
	lab, err := testbed.Attach(stateDir(), id)
	if err != nil {
		return exit(exitHost, err)
	}
	if _, err := lab.Node(node); err != nil {
		return exit(exitFile, err)
	}
	binary, err := os.Executable()
	if err != nil {
		return exit(exitHost, err)
	}
	cmd := exec.Command(binary, append([]string{"node", hostsPath(lab.ID)}, argv...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	ownMounts(cmd)
	if err := lab.Start(node, cmd); err != nil {
		return exit(exitHost, err)
	}
	defer passSignals(s, cmd.Process)()
	err = cmd.Wait()
	var status *exec.ExitError
	if errors.As(err, &status) {
		if ws, ok := status.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return exit(128+int(ws.Signal()), nil)
		}
		return exit(status.ExitCode(), nil)
	}
	return err
}

// passSignals lets a command decide what to do about our signals. A terminal
// sends its own to the command too, so those are not passed on a second time.
func passSignals(s Streams, command *os.Process) (stop func()) {
	ch, done := make(chan os.Signal, 4), make(chan struct{})
	signal.Notify(ch, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	in, ok := s.In.(*os.File)
	onTerminal := ok && term.IsTerminal(int(in.Fd()))
	go func() {
		for {
			select {
			case got := <-ch:
				if !onTerminal || got == syscall.SIGTERM || got == syscall.SIGHUP {
					_ = command.Signal(got) // it may have ended
				}
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(ch); close(done) }
}

// newNode is the hidden verb that turns into a command inside a node, after it
// has put the lab's hosts file in place.
func newNode(Streams) *cobra.Command {
	return &cobra.Command{
		Use:                "node HOSTS COMMAND [ARG...]",
		Short:              "Become a command that knows the lab's nodes by name",
		Hidden:             true,
		DisableFlagParsing: true,
		Args:               cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return become(args[0], args[1:])
		},
	}
}

func newDown(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "down [ID]",
		Short: "Remove a standing lab",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			lab, err := testbed.Attach(stateDir(), id)
			if err != nil {
				return exit(exitHost, err)
			}
			if err := lab.Down(cmd.Context()); err != nil {
				return exit(exitHost, err)
			}
			fmt.Fprintf(s.Out, "lab %s is gone\n", lab.ID)
			return nil
		},
	}
}
