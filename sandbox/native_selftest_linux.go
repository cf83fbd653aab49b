package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"trajgen/sandbox/internal/broker"
)

// probe prints what a sandbox must not be without, one fact a line. Only builtins of the shell: it is one process.
const probe = `read -r _ host size < /proc/self/uid_map && echo "ids $host $size"
for f in /root/* /home/*; do [ -e "$f" ] && echo "sees $f"; done
[ -e /sys/kernel ] && echo "sees /sys"
while read -r name value; do
  case $name in Seccomp:|NoNewPrivs:|CapBnd:) echo "$name $value";; esac
done < /proc/self/status
read -r pid _ < /proc/self/stat; [ "$pid" -lt 1000 ] && echo "own pids"
for d in /usr /usr/bin / /etc /bin /lib /dev; do (: > $d/.probe) 2>/dev/null && echo "writes $d"; done
exit 0`

// selfTest opens one sandbox and looks around in it. The level is what it finds, not what was asked for.
func (n *native) selfTest(ready broker.Ready) (Guarantees, error) {
	g := Guarantees{
		Backend: "native", Level: LevelStrong, Network: nativeNetworks,
		Limits: map[string]string{"memory": "soft", "processes": "soft", "disk": "hard", "files": "hard", "cpu": "none"},
	}
	if ready.Memory {
		g.Limits["memory"] = "hard"
	}
	if ready.Processes {
		g.Limits["processes"] = "hard"
	}
	lacks := func(what string) {
		g.Level = LevelUser
		g.Missing = append(g.Missing, what)
	}
	if !ready.Memory || !ready.Processes {
		for _, m := range ready.Missing {
			lacks(m)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	n.guarantees = g
	sb, err := n.Open(ctx, Spec{ID: "self-test"})
	if err != nil {
		return g, err
	}
	result, err := Run(ctx, sb, Command{Args: []string{"/bin/sh", "-c", probe}}, RunOptions{})
	if err = errors.Join(err, sb.Close()); err != nil {
		return g, fmt.Errorf("self-test: %w", err)
	}
	text := string(result.Stdout.Bytes())
	if result.Exit.Code != 0 || !strings.Contains(text, "ids ") {
		return g, fmt.Errorf("self-test: exit %d, %q, %q", result.Exit.Code, text, result.Stderr.Bytes())
	}
	for _, must := range []string{"Seccomp: 2", "NoNewPrivs: 1", "own pids"} {
		if !strings.Contains(text, must) {
			return g, fmt.Errorf("self-test: the sandbox is not closed: no %q in %q", must, text)
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "sees ") || strings.HasPrefix(line, "writes ") {
			return g, fmt.Errorf("self-test: the sandbox is not closed: it %s", line)
		}
		if ids, ok := strings.CutPrefix(line, "ids "); ok && (strings.HasSuffix(ids, " 1") || strings.HasPrefix(ids, "0 ")) {
			if os.Getuid() == 0 {
				return g, fmt.Errorf("self-test: user ids are not shifted: %q", ids)
			}
			lacks("a range of user ids: run as root")
		}
	}
	return g, nil
}
