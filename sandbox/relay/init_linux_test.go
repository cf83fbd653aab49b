package relay_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/relay"
	"trajgen/sandbox/sandboxtest"
)

// TestProcessOne runs an agent as the first process of a container.
func TestProcessOne(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("makes a namespace")
	}
	unshare, err := exec.LookPath("unshare")
	sandboxtest.Require(t, "bare", err)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := startChild(t, &exec.Cmd{
		Path: unshare, Args: []string{"unshare", "-p", "-m", "-f", "--mount-proc", "--kill-child", self, "trajgen-helper", "agent", "bare", "--workdir", t.TempDir()},
	})
	client, err := relay.Dial(t.Context(), c, relay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sb := box(t, client)
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"sh", "-c", "(setsid sleep 75.4 &); sleep 75.4 & tr '\\0' ' ' </proc/1/cmdline; ls /proc/self/fd"}}, sandbox.RunOptions{})
	if out := string(r.Stdout.Bytes()); err != nil || !strings.Contains(out, "trajgen-helper agent bare") || !strings.HasSuffix(out, "0\n1\n2\n3\n") {
		t.Errorf("got %q, %q, %v", out, r.Stderr.Bytes(), err)
	}
	if n := sandboxtest.Sleepers("75.4"); n != 2 {
		t.Errorf("got %d sleepers, want 2", n)
	}
	began := time.Now()
	if err := c.WriteCloser.Close(); err != nil {
		t.Fatal(err)
	}
	sandboxtest.Eventually(t, 20*time.Second, "no process is left", func() bool { return sandboxtest.Sleepers("75.4") == 0 })
	<-client.Done()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}
