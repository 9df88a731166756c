package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"wirelab/workloads"
)

// pinger plays the one role of a ping.
type pinger struct {
	env    *workloads.Env
	p      *Ping
	socket *socket
	tally  *tally
}

// Run asks at the interval until its time is over, then waits for what is
// still on its way.
func (r *pinger) Run(ctx context.Context, env *workloads.Env) error {
	r.env, r.p = env, &Ping{}
	if err := json.Unmarshal(env.Spec.Config, r.p); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	target, err := env.Addr(r.p.To, r.p.version())
	if err != nil {
		return err
	}
	e := echo{version: r.p.version(), id: uint16(os.Getpid()), token: env.Rand("token").Uint64() ^ uint64(os.Getpid())}
	if r.socket, err = openSocket(target, e); err != nil {
		return err
	}
	defer r.socket.close()
	env.Ready(nil)
	a, err := env.Begin(ctx)
	if err != nil {
		return err
	}
	r.tally = newTally(r.p.Wait, a.WindowBegin, a.WindowEnd)
	listen, deaf := context.WithCancel(context.Background())
	defer deaf()
	heard := make(chan error, 1)
	go func() { heard <- r.listen(listen) }()
	sendErr := r.ask(ctx, a)
	// A stop message does not end the waiting for replies: they were asked for
	// in time, and are few.
	r.waitSettled()
	deaf()
	listenErr := <-heard
	values, h := r.tally.summary()
	env.Summary(-1, values, map[string]string{"socket": r.socket.how})
	if h.Count() > 0 {
		env.Hist("rtt_s", -1, h)
	}
	if err := errors.Join(sendErr, listenErr); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// waitSettled waits for replies that could still count.
func (r *pinger) waitSettled() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !r.tally.settled(r.env.Now()) {
		select {
		case <-r.env.Hurry():
			return
		case <-tick.C:
		}
	}
}

// ask sends the requests.
func (r *pinger) ask(ctx context.Context, a workloads.Activity) error {
	defer workloads.PreciseThread()()
	packet := make([]byte, icmpHeader+int(r.p.Size))
	for i := 0; r.p.Count == 0 || i < r.p.Count; i++ {
		due := a.Begin + int64(i)*int64(r.p.Interval)
		if due >= a.End || workloads.SleepUntil(ctx, due) != nil {
			return nil
		}
		seq := r.tally.send(due, r.env.Now())
		r.socket.echo.fill(packet, seq)
		if err := r.socket.send(packet); err != nil {
			r.tally.unsent()
			if i == 0 {
				return fmt.Errorf("send to node %s: %w", r.p.To, err)
			}
		}
	}
	return nil
}

// listen books replies until ctx ends.
func (r *pinger) listen(ctx context.Context) error {
	defer workloads.PreciseThread()()
	for ctx.Err() == nil {
		seq, at, ok, err := r.socket.receive(r.env.Now)
		if err != nil {
			return fmt.Errorf("receive replies: %w", err)
		}
		if !ok {
			continue
		}
		if sent, rtt, ok := r.tally.reply(seq, at); ok {
			r.env.Sample(sent, -1, workloads.Field{Name: "rtt_s", Value: float64(rtt) / 1e9})
		}
	}
	return nil
}
