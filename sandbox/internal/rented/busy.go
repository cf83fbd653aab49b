package rented

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"trajgen/sandbox"
)

// busy reports whether processes run in a sandbox that descend from its agent, which is the parent of the script that lists
// them.
func busy(ctx context.Context, sb sandbox.Sandbox) (bool, error) {
	const look = `echo $$ $PPID; exec cat /proc/[0-9]*/stat 2>/dev/null`
	r, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"/bin/sh", "-c", look}}, sandbox.RunOptions{Head: 16 << 20})
	if err != nil {
		return false, fmt.Errorf("look for processes: %w", err)
	}
	if r.TimedOut || r.Stdout.Omitted() > 0 {
		return false, fmt.Errorf("look for processes: exit %d, %d bytes, too late %v", r.Exit.Code, r.Stdout.Total(), r.TimedOut)
	}
	return others(r.Stdout.Bytes())
}

// others reports whether the parent of the listing process has further living descendants.
func others(listing []byte) (bool, error) {
	first, rest, _ := bytes.Cut(listing, []byte("\n"))
	var self, agent string
	if _, err := fmt.Sscan(string(first), &self, &agent); err != nil {
		return false, fmt.Errorf("look for processes: %q says nothing: %w", first, err)
	}
	parents, dead := map[string]string{}, map[string]bool{}
	for line := range bytes.Lines(rest) {
		pid, _, _ := strings.Cut(string(line), " ")
		// A name may hold anything, also parentheses.
		end := bytes.LastIndexByte(line, ')')
		if end < 0 {
			continue
		}
		if fields := strings.Fields(string(line[end+1:])); len(fields) > 1 {
			parents[pid], dead[pid] = fields[1], fields[0] == "Z" || fields[0] == "X"
		}
	}
	for pid := range parents {
		if pid == self || dead[pid] {
			continue
		}
		for p, steps := pid, 0; p != "" && steps <= len(parents); p, steps = parents[p], steps+1 {
			if parents[p] == agent && p != self {
				return true, nil
			}
		}
	}
	return false, nil
}
