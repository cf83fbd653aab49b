//go:build linux

package build_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trajgen/sandbox/images/build"
	"trajgen/sandbox/sandboxtest"
)

// newer are what engines do only with a builder of their own beside them.
var newer = []string{"<<", "--mount", "--chmod", "--exclude", "--link", "--network", "--unpack", "TARGET", "chown=7", "/home/app/own", "RUN exit 1"}

// TestDockerfilesLikeDocker builds the Dockerfiles with docker, too, and compares the files.
func TestDockerfilesLikeDocker(t *testing.T) {
	docker := func(stdin []byte, args ...string) []byte {
		t.Helper()
		cmd := exec.Command("docker", args...)
		cmd.Stdin = bytes.NewReader(stdin)
		var errOut strings.Builder
		cmd.Stderr = &errOut
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("docker %q: %v\n%s", args, err, errOut.String())
		}
		return out
	}
	sandboxtest.Require(t, "docker", exec.Command("docker", "version").Run())
	tarball, err := base()
	if err != nil {
		t.Fatal(err)
	}
	docker(nil, "import", tarball, "base:latest")
	defer docker(nil, "rmi", "-f", "base:latest")
	p := newPlace(t, t.TempDir(), func(o *build.Options) { o.Secrets = map[string][]byte{"token": []byte("abc")} })
	compared := 0
	for _, d := range dockerfiles {
		if slices.ContainsFunc(newer, func(word string) bool { return strings.Contains(d.text, word) }) {
			continue
		}
		compared++
		source := d.source(t)
		image, err := p.builder.Build(t.Context(), source)
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		args := []string{"build", "-q", "--network=none"}
		for key, value := range d.args {
			args = append(args, "--build-arg", key+"="+value)
		}
		if d.target != "" {
			args = append(args, "--target", d.target)
		}
		id := strings.TrimSpace(string(docker(nil, append(args, source.Dir)...)))
		container := strings.TrimSpace(string(docker(nil, "create", id, "true")))
		theirs := listTar(t, docker(nil, "export", container))
		docker(nil, "rm", container)
		if diff := cmp.Diff(theirs, p.files(t, image)); diff != "" {
			t.Errorf("%s: files (-docker +ours):\n%s", d.name, diff)
		}
	}
	if compared < 12 {
		t.Errorf("%d Dockerfiles were compared", compared)
	}
}

// listTar lists what docker exports as files does, without what docker adds.
func listTar(t *testing.T, data []byte) string {
	t.Helper()
	entries, contents := map[string]*tar.Header{"/": {Typeflag: tar.TypeDir, Mode: 0o755}}, map[string][]byte{}
	reader := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := path.Clean("/" + h.Name)
		if own(name) || slices.Contains([]string{"/.dockerenv", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab"}, name) {
			continue
		}
		if h.Typeflag == tar.TypeLink {
			first := path.Clean("/" + h.Linkname)
			entries[name], contents[name] = entries[first], contents[first]
			continue
		}
		entries[name] = h
		contents[name], err = io.ReadAll(io.LimitReader(reader, 80))
		if err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for name := range entries {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/")) })
	var all strings.Builder
	for _, name := range names {
		describe(&all, name, entries[name], contents[name])
	}
	return all.String()
}

func describe(to *strings.Builder, name string, h *tar.Header, content []byte) {
	fmt.Fprintf(to, "%c %04o %d:%d %s", h.Typeflag, h.Mode&0o7777, h.Uid, h.Gid, name)
	switch h.Typeflag {
	case tar.TypeSymlink:
		fmt.Fprintf(to, " -> %s", h.Linkname)
	case tar.TypeReg:
		fmt.Fprintf(to, " %q", content)
	}
	to.WriteString("\n")
}

// own reports whether a file is the base's, or a place for what every sandbox has.
func own(name string) bool {
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc/passwd", "/etc/group", "/dev", "/proc", "/sys"} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}
