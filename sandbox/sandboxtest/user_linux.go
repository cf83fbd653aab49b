package sandboxtest

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// AsOrdinaryUser runs this test program again with other arguments, as a user without any rights, and returns what it
// printed. It skips the test when it is run by such a user itself.
func AsOrdinaryUser(t *testing.T, args ...string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("is run by root")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "ordinary")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o777), os.WriteFile(dir+"/test", program, 0o755), os.Chmod(dir+"/test", 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(setpriv, append([]string{"--reuid=65534", "--regid=65534", "--clear-groups", dir + "/test"}, args...)...)
	c.Dir = "/"
	c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "GOCOVERDIR=")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	return string(out)
}
