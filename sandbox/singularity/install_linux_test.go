package singularity_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"trajgen/sandbox/sandboxtest"
)

// Files of an image that are instructions to the stand-in.
const (
	bindsFile = ".binds" // directories of this machine that are shown
	envFile   = ".env"   // K=V
)

// Caps are what instances of Apptainer are not.
var Caps = sandboxtest.Caps{Lacks: map[string]string{
	"no network": "network none has a loopback",
	"attempts":   "all of /proc is shown that the kernel does not keep from an ordinary user",
}}

// Stand is a stand-in that was installed.
type Stand struct {
	// Program is the stand-in, and Image a directory with the toolchain of this machine.
	Program, Image string
	dir            string
}

// Install makes the stand-in for a test, and an image.
func Install(t testing.TB) (*Stand, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "apptainer-*")
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Stand{dir: dir, Program: filepath.Join(dir, "apptainer"), Image: filepath.Join(dir, "image")}
	if err := os.Symlink(self, s.Program); err != nil {
		return nil, err
	}
	return s, s.makeImage(s.Image, "")
}

// Publish puts an image where it can be pulled from as docker://name.
func (s *Stand) Publish(name, env string) error {
	return s.makeImage(filepath.Join(s.dir, "registry", name), env)
}

func (s *Stand) makeImage(at, env string) error {
	var errs []error
	write := func(name, content string) {
		errs = append(errs, os.MkdirAll(filepath.Dir(filepath.Join(at, name)), 0o755), os.WriteFile(filepath.Join(at, name), []byte(content), 0o644))
	}
	for _, name := range []string{"root", "home", "tmp", "var/tmp", "etc", "usr", "run", "mnt"} {
		errs = append(errs, os.MkdirAll(filepath.Join(at, name), 0o755))
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		if target, err := os.Readlink("/" + name); err == nil {
			errs = append(errs, os.Symlink(target, filepath.Join(at, name)))
		}
	}
	write("etc/passwd", "root:x:0:0:root:/root:/bin/bash\n")
	write("etc/group", "root:x:0:\ntty:x:5:\n")
	write("etc/hosts", "127.0.0.1 localhost sandbox\n")
	if cache, err := os.ReadFile("/etc/ld.so.cache"); err == nil {
		write("etc/ld.so.cache", string(cache))
	}
	write(bindsFile, "/usr /etc/alternatives /etc/ssl/certs\n")
	write(envFile, env)
	return errors.Join(errs...)
}

// Calls is a line for each time that the stand-in was called.
func (s *Stand) Calls() string {
	content, _ := os.ReadFile(filepath.Join(s.dir, "calls"))
	return string(content)
}
