package rented

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/probe"
)

// testTime bounds the self-test: the service may have to fetch an image.
const testTime = 15 * time.Minute

// probed are limits that a machine does not have by chance.
var probed = sandbox.Limits{Memory: 1088 << 20, CPUs: 1.5, Files: 333}

// selfTest rents a machine and probes it. What separates it from other machines is the service's statement, whatever it looks
// like from inside.
func (b *backend) selfTest() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), testTime, fmt.Errorf("no machine in %v", testTime))
	defer cancel()
	sb, err := b.Open(ctx, sandbox.Spec{ID: "self-test", Limits: probed})
	if err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	facts, err := probe.Look(ctx, sb)
	if err := errors.Join(err, sb.Close()); err != nil {
		return fmt.Errorf("self-test: %w", err)
	}
	if !facts.NoNewPrivs {
		return errors.New("self-test: commands can gain privileges")
	}
	judge(&b.guarantees, facts)
	return nil
}

// judge corrects the guarantees by what was found.
func judge(g *sandbox.Guarantees, facts probe.Facts) {
	lacks := func(what string) { g.Missing = append(g.Missing, what) }
	g.Isolation = map[string]string{"files": "own", "processes": "own", "network": "own", "ids": facts.IDs, "calls": "none", "kernel": "shared"}
	if strings.Contains(facts.Kernel, "gvisor") {
		g.Isolation["kernel"] = "own"
	}
	if facts.Filtered {
		g.Isolation["calls"] = "filtered"
	} else {
		lacks("a filter of system calls: the machine's kernel lets none be set")
	}
	if facts.IDs != "shifted" {
		lacks("user ids of its own")
	}
	if !facts.Unreachable {
		lacks("without a network the machine has a route none the less: that nothing passes is the service's word")
	}
	found := func(limit string, is bool) {
		if is {
			g.Limits[limit] = "hard"
		}
	}
	found(sandbox.LimitFiles, facts.Files == int64(probed.Files))
	found(sandbox.LimitMemory, facts.Memory == probed.Memory)
	found(sandbox.LimitCPU, facts.CPUs > 1.49 && facts.CPUs < 1.51)
}
