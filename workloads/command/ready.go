package command

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// readyPoll is how often a sign of readiness is looked for.
const readyPoll = 5 * time.Millisecond

// portFree finds a port in use before the program does.
func (r *runner) portFree() error {
	if r.c.Ready == nil || r.c.Ready.Port == 0 || !listening(r.c.Ready.Port) {
		return nil
	}
	return fmt.Errorf("port %d on node %s is in use already: choose another one, or end what listens there", r.c.Ready.Port, r.env.Spec.Node)
}

// waitReady returns when the server shows its sign, or why it never will.
func (r *runner) waitReady(ctx context.Context, p *process) error {
	ready := r.c.Ready
	if ready == nil {
		return nil
	}
	limit := ready.Timeout
	if limit == 0 {
		limit = readyTimeout
	}
	var re *regexp.Regexp
	what := fmt.Sprintf("port %d", ready.Port)
	if ready.Regex != "" {
		what = fmt.Sprintf("output matching %q", ready.Regex)
		var err error
		if re, err = regexp.Compile(ready.Regex); err != nil {
			return err
		}
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if re != nil && (re.Match(p.stdout.tail()) || re.Match(p.stderr.tail())) {
			return nil
		}
		if re == nil && listening(ready.Port) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.exited:
			if err := r.verdict(p, false); err != nil {
				return fmt.Errorf("before it was ready (%s): %w", what, err)
			}
			return fmt.Errorf("it ended before it was ready (%s): %s", what, p.lastWords())
		case <-deadline.C:
			return fmt.Errorf("not ready within %v (no %s): %s", limit, what, p.lastWords())
		case <-tick.C:
		}
	}
}

// The socket states of /proc/net: TCP_LISTEN, and a bound UDP socket
// (TCP_CLOSE).
const (
	stateListen = "0A"
	stateBound  = "07"
)

// listening tells whether a socket of this namespace listens on a TCP port or
// has bound a UDP port.
func listening(port int) bool {
	for file, state := range map[string]string{"tcp": stateListen, "tcp6": stateListen, "udp": stateBound, "udp6": stateBound} {
		if portIn("/proc/self/net/"+file, port, state) {
			return true
		}
	}
	return false
}

func portIn(path string, port int, state string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// sl local_address rem_address st …, addresses as HEX:PORT
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != state {
			continue
		}
		_, text, ok := strings.Cut(fields[1], ":")
		if !ok {
			continue
		}
		b, err := hex.DecodeString(text)
		if err == nil && len(b) == 2 && int(b[0])<<8|int(b[1]) == port {
			return true
		}
	}
	return false
}
