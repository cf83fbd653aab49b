package native

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/broker"
)

// probe prints what a closed sandbox must have, one fact a line. It uses builtins of the shell only: it is one process.
const probe = `read -r _ host size < /proc/self/uid_map && echo "ids $host $size"
for f in /root/* /home/*; do [ -e "$f" ] && echo "sees $f"; done
[ -e /folder/file ] && echo "folder"
[ -e /sys/kernel ] && echo "sees /sys"
while read -r name value; do
  case $name in Seccomp:|NoNewPrivs:|CapBnd:) echo "$name $value";; esac
done < /proc/self/status
read -r pid _ < /proc/self/stat; [ "$pid" -lt 1000 ] && echo "own pids"
for d in /usr /usr/bin / /etc /bin /lib /dev /folder; do (: > $d/.probe) 2>/dev/null && echo "writes $d"; done
` + probeLimits + `exit 0`

// selfTest opens one sandbox and measures it. The level is what it finds, not what was asked for.
func (n *backend) selfTest(ready broker.Ready) (sandbox.Guarantees, error) {
	g := sandbox.Guarantees{
		Backend: "native", Level: sandbox.LevelStrong, Network: networks, FixedSystem: true, WritableSystem: true, FixedFolder: true,
		Images: n.opts.Images != nil, StoredImages: n.opts.Images != nil,
		Isolation: isolation(),
	}
	lacks := func(what string) {
		g.Level = sandbox.LevelUser
		g.Missing = append(g.Missing, what)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	n.guarantees = g
	sb, err := n.openSelfTest(ctx, &g)
	if err != nil {
		return g, err
	}
	result, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"/bin/sh", "-c", probe}}, sandbox.RunOptions{})
	g.Limits = groupLimits(ready, sb.name, sb.plan.spec.Limits)
	if g.Limits[sandbox.LimitMemory] != "hard" || g.Limits[sandbox.LimitProcesses] != "hard" {
		for _, m := range ready.Missing {
			lacks(m)
		}
		if g.Limits[sandbox.LimitMemory] != "hard" {
			lacks(softMemory)
		}
		if len(ready.Missing) == 0 {
			lacks(fmt.Sprintf("hard limits on memory and processes: the limits of the cgroups differ from those that were set (%v)", g.Limits))
		}
	}
	if forkErr := n.forks(ctx, sb); forkErr != nil {
		g.Missing = append(g.Missing, fmt.Sprintf("snapshots: %v", forkErr))
	} else {
		g.Snapshots = true
	}
	if err = errors.Join(err, sb.Close()); err != nil {
		return g, fmt.Errorf("self-test: %w", err)
	}
	if ports := sb.Lacks(); ports != "" {
		g.Missing = append(g.Missing, "networks allowlist and full reach ports 80, 443 and those that are named alone: "+ports)
	}
	text := string(result.Stdout.Bytes())
	if result.Exit.Code != 0 || !strings.Contains(text, "ids ") {
		return g, fmt.Errorf("self-test: exit %d, %q, %q", result.Exit.Code, text, result.Stderr.Bytes())
	}
	for _, must := range []string{"Seccomp: 2", "NoNewPrivs: 1", "own pids", "folder"} {
		if !strings.Contains(text, must) {
			return g, fmt.Errorf("self-test: the sandbox is not closed: no %q in %q", must, text)
		}
	}
	maps.Copy(g.Limits, ownLimits(text, sb.plan.spec.Limits))
	if n.users.kind == broker.IDsShared && g.Images {
		g.Missing = append(g.Missing, "outside, the root of an image is this user, as its files are; others of it, and all of other sandboxes, have ids that they share")
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "sees ") || strings.HasPrefix(line, "writes ") {
			return g, fmt.Errorf("self-test: the sandbox is not closed: it %s", line)
		}
		if ids, ok := strings.CutPrefix(line, "ids "); ok && (strings.HasSuffix(ids, " 1") || strings.HasPrefix(ids, "0 ")) {
			if n.users.kind != broker.IDsSingle {
				return g, fmt.Errorf("self-test: user ids are not shifted: %q", ids)
			}
			g.Isolation["ids"] = "single"
			lacks(fmt.Sprintf("a range of user ids: %v, or run as root", n.single))
		}
	}
	return g, nil
}

// forks finds out whether a sandbox can be forked, by doing it.
func (n *backend) forks(ctx context.Context, sb *confined) error {
	if err := sb.Files().Write(ctx, sandbox.FileWrite{Path: "kept", Data: []byte("kept")}); err != nil {
		return err
	}
	snapshot, err := sb.Snapshot(ctx)
	if err != nil {
		return err
	}
	p, err := n.plan(ctx, sandbox.Spec{ID: "self-test-fork", From: snapshot})
	if err != nil {
		return errors.Join(err, snapshot.Close())
	}
	fork, err := n.open(ctx, p, p.spec.ID)
	if err != nil {
		return errors.Join(err, snapshot.Close())
	}
	_, _, err = fork.Files().Read(ctx, "kept", 0, 8)
	return errors.Join(err, fork.Close(), snapshot.Close())
}

// openSelfTest opens a sandbox whose guest tries its network, or one without a network when that fails.
func (n *backend) openSelfTest(ctx context.Context, g *sandbox.Guarantees) (*confined, error) {
	folder := sandbox.NewFolder("folder", sandbox.FileWrite{Path: "file"})
	open := func(network sandbox.Network) (*confined, error) {
		p, err := n.plan(ctx, sandbox.Spec{ID: "self-test", Network: network, Limits: testLimits, ReadOnly: folder})
		if err != nil {
			return nil, err
		}
		return n.open(ctx, p, p.spec.ID)
	}
	b, carriedErr := open(sandbox.NetworkFull)
	if carriedErr == nil {
		return b, nil
	}
	b, err := open(sandbox.NetworkLoopback)
	if err != nil {
		return nil, err
	}
	g.Network = []sandbox.Network{sandbox.NetworkNone, sandbox.NetworkLoopback}
	g.Missing = append(g.Missing, fmt.Sprintf("networks allowlist and full: %v", carriedErr))
	return b, nil
}
