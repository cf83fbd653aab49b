package sandboxtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// AsOrdinaryUser runs this test program again with other arguments, as a user without any rights, and returns its output. It
// skips the test when the present user is such a user.
func AsOrdinaryUser(t *testing.T, args ...string) string {
	t.Helper()
	return asUser(t, nil, ordinary, args)
}

// AsRootOfContainer does so as root with the rights that containers usually have: none to mount, for example.
func AsRootOfContainer(t *testing.T, args ...string) string {
	t.Helper()
	const rights = "-all,+chown,+dac_override,+fsetid,+fowner,+mknod,+net_raw,+setgid,+setuid,+setfcap,+setpcap,+net_bind_service,+sys_chroot,+kill,+audit_write"
	return asUser(t, nil, []string{"--bounding-set", rights}, args)
}

// ordinary are the arguments of setpriv that make an ordinary user.
var ordinary = []string{"--reuid=65534", "--regid=65534", "--clear-groups"}

// AsUserWithIDs does so for a user with subordinate ids, which are not in the machine's own files. It needs newuidmap and
// newgidmap.
func AsUserWithIDs(t *testing.T, args ...string) string {
	t.Helper()
	return asUser(t, map[string]string{"/etc/subuid": "65534:200000:65536\n", "/etc/subgid": "nobody:300000:65536\n"}, ordinary, args)
}

// asUser runs it as a user that setpriv makes, with files of this content mounted over others.
func asUser(t *testing.T, shown map[string]string, user, args []string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("is run by root")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip(err)
	}
	dir, program := Copy(t)
	script := `exec "$@"`
	for name, content := range shown {
		file := filepath.Join(dir, filepath.Base(name))
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		script = "mount --bind " + file + " " + name + " && " + script
	}
	as := slices.Concat([]string{"-m", "/bin/sh", "-c", script, "sh", setpriv}, user, []string{program}, args)
	c := exec.Command("unshare", as...)
	c.Dir = "/"
	c.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "GOCOVERDIR=")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("as another user: %v\n%s", err, out)
	}
	return string(out)
}

// Copy puts this test program where every user can run it, in a directory that every user can write to.
func Copy(t testing.TB) (dir, program string) {
	t.Helper()
	dir = OpenDir(t)
	program = filepath.Join(dir, "test")
	content, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o777), os.WriteFile(program, content, 0o755), os.Chmod(program, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, program
}
