package testbed

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const ifaFDADFailed = 0x08 // IFA_F_DADFAILED

// awaitDAD waits until no address of a link with duplicate address detection
// is tentative.
func (b *builder) awaitDAD(ctx context.Context) error {
	if !b.v6 {
		return nil
	}
	for n, ends := range b.layout.links {
		for _, e := range ends {
			if b.layout.Links[e.link].DAD && !b.layout.isBridge(n) {
				if err := b.awaitAddress(ctx, n); err != nil {
					return fmt.Errorf("link %s: %w", b.layout.Links[e.link].Name, err)
				}
				break
			}
		}
	}
	return nil
}

func (b *builder) awaitAddress(ctx context.Context, node int) error {
	h, err := b.hosts[node].Netlink()
	if err != nil {
		return err
	}
	defer h.Close()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := h.AddrList(nil, unix.AF_INET6)
		if err != nil {
			return fmt.Errorf("list addresses of %s: %w", b.layout.Nodes[node].Name, err)
		}
		tentative := ""
		for _, a := range list {
			if a.Flags&ifaFDADFailed != 0 {
				return fmt.Errorf("address %s of %s is used twice (duplicate address detection)", a.IP, b.layout.Nodes[node].Name)
			}
			if a.Flags&unix.IFA_F_TENTATIVE != 0 {
				tentative = a.IP.String()
			}
		}
		if tentative == "" {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for duplicate address detection in %s: %w: %s is still tentative",
				b.layout.Nodes[node].Name, context.Cause(ctx), tentative)
		}
	}
}
