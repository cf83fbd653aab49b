// Package probe looks around inside a sandbox that something else than this program has made: what a backend claims is
// what is found there.
package probe

import (
	"context"
	"encoding/json"
	"fmt"

	"trajgen/sandbox"
)

// helper is the name under which the agent knows what looks around.
const helper = "probe"

// Facts are what a command of a sandbox finds. Limits are 0 where none was found.
type Facts struct {
	PID         int
	Processes   int    // that it sees
	IDs         string // host, shifted or single
	Filtered    bool   // system calls are
	NoNewPrivs  bool
	Memory      int64
	PIDs        int64
	CPUs        float64
	Disk        int64 // bytes of the root file system
	Inodes      int64
	Files       int64    // open files of a process
	Interfaces  []string // of the network, but for a loopback
	Unreachable bool     // nothing is but the loopback
	Kernel      string   // its release
}

// Look runs the probe in a sandbox.
func Look(ctx context.Context, sb sandbox.Sandbox) (Facts, error) {
	var facts Facts
	result, err := sandbox.Run(ctx, sb, sandbox.Command{Helper: helper}, sandbox.RunOptions{})
	if err != nil {
		return facts, fmt.Errorf("look around in a sandbox: %w", err)
	}
	if result.Exit.Code != 0 {
		return facts, fmt.Errorf("look around in a sandbox: exit code %d, %q", result.Exit.Code, result.Stderr.Bytes())
	}
	if err := json.Unmarshal(result.Stdout.Bytes(), &facts); err != nil {
		return facts, fmt.Errorf("look around in a sandbox: %w", err)
	}
	return facts, nil
}
