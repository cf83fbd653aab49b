package mcp

import (
	"context"
	"fmt"
	"time"

	"trajgen/sandbox"
)

// Probe is what connecting to a server once more showed.
type Probe struct {
	Took  time.Duration // to connect and to list its tools
	Tools int
	// Packages are how many of its packages are known, and so looked for in advisories.
	Packages int
	Noise    int64    // lines of its standard output that were not messages
	Differs  []string // from what it said before
}

// Probe connects to a server in a sandbox of its own and asks it again what it has.
func (s *Set) Probe(ctx context.Context, name string) (_ Probe, err error) {
	for _, each := range s.servers {
		if each.name != name {
			continue
		}
		again := *each
		box := func(context.Context) (sandbox.Sandbox, error) { return nil, nil }
		if each.cfg.URL == "" {
			probing, err := s.opts.Sandbox(ctx, "mcp-probe")
			if err != nil {
				return Probe{}, err
			}
			defer probing.Close()
			box = func(context.Context) (sandbox.Sandbox, error) { return probing, nil }
		}
		began := s.opts.Now()
		noise, err := again.askOnce(ctx, box)
		if err != nil {
			return Probe{}, err
		}
		return Probe{
			s.opts.Now().Sub(began), len(again.described.Tools), len(each.packages), noise, each.described.differs(again.described),
		}, nil
	}
	return Probe{}, fmt.Errorf("no mcp server %q (have %v)", name, s.Names())
}
