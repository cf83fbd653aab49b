package sandboxtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// AsOrdinaryUser runs this test program again with other arguments, as a user without any rights, and returns what it
// printed. It skips the test when it is run by such a user itself.
func AsOrdinaryUser(t *testing.T, args ...string) string {
	t.Helper()
	return asUser(t, nil, args)
}

// AsUserWithIDs does so for a user to whom the system lends ids, of which the machine's own files say nothing. It needs
// newuidmap and newgidmap.
func AsUserWithIDs(t *testing.T, args ...string) string {
	t.Helper()
	return asUser(t, map[string]string{"/etc/subuid": "65534:200000:65536\n", "/etc/subgid": "nobody:300000:65536\n"}, args)
}

// asUser shows a user files of this content, in the places of others.
func asUser(t *testing.T, shown map[string]string, args []string) string {
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
	script := `exec "$@"`
	for name, content := range shown {
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		script = "mount --bind " + file + " " + name + " && " + script
	}
	as := []string{"-m", "/bin/sh", "-c", script, "sh", setpriv, "--reuid=65534", "--regid=65534", "--clear-groups", dir + "/test"}
	c := exec.Command("unshare", append(as, args...)...)
	c.Dir = "/"
	c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "GOCOVERDIR=")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	return string(out)
}
