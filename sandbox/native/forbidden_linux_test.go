package native_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/sandboxtest"
)

// TestForbiddenNamespaces opens native where user namespaces are forbidden: in one in which no more may be made.
func TestForbiddenNamespaces(t *testing.T) {
	if dir := os.Getenv("FORBIDDEN_NAMESPACES"); dir != "" {
		b, err := sandbox.Open("native", sandbox.Options{StateDir: dir})
		if err == nil {
			t.Log(strings.Join(b.Guarantees().Missing, "; "), b.Close())
		} else {
			t.Log(err)
		}
		return
	}
	const script = `echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -test.v -test.run '^TestForbiddenNamespaces$'`
	c := exec.Command("unshare", "--user", "--map-root-user", "sh", "-c", script, os.Args[0])
	c.Env = append(os.Environ(), "FORBIDDEN_NAMESPACES="+sandboxtest.OpenDir(t)+"/state")
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "sysctl user.max_user_namespaces") {
		t.Errorf("got %v\n%s", err, out)
	}
}
