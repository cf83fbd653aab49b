//go:build linux

package build_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/images"
	"trajgen/sandbox/images/build"
	_ "trajgen/sandbox/native"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	os.Exit(m.Run())
}

// programs are those of the base image, taken from this machine.
var programs = []string{"sh", "bash", "cat", "ls", "mkdir", "ln", "cp", "mv", "rm", "chmod", "chown", "id", "env", "stat", "find", "sort", "touch", "mkfifo", "tar", "sleep", "readlink"}

// base is a tarball of a small system.
var base = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "trajgen-build-test-*")
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	put := func(h tar.Header, data string) {
		h.Size = int64(len(data))
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		err = errors.Join(err, w.WriteHeader(&h))
		_, failed := io.WriteString(w, data)
		err = errors.Join(err, failed)
	}
	for _, name := range []string{"etc", "usr", "usr/bin", "usr/lib", "usr/lib64", "root", "home", "home/app", "var"} {
		h := tar.Header{Name: name + "/", Typeflag: tar.TypeDir, Mode: 0o755}
		if name == "home/app" {
			h.Uid, h.Gid = 1000, 1001
		}
		put(h, "")
	}
	put(tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777}, "")
	for _, name := range []string{"bin", "lib", "lib64"} {
		put(tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: "usr/" + name}, "")
	}
	put(tar.Header{Name: "etc/passwd", Mode: 0o644}, "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001::/home/app:/bin/sh\n")
	put(tar.Header{Name: "etc/group", Mode: 0o644}, "root:x:0:\napp:x:1001:\nextra:x:77:app\n")
	var files []string
	for _, name := range programs {
		path, failed := exec.LookPath("/usr/bin/" + name)
		if failed != nil {
			return "", failed
		}
		libraries, failed := exec.Command("ldd", path).Output()
		if failed != nil {
			return "", fmt.Errorf("ldd %s: %w", path, failed)
		}
		files = append(files, path)
		for _, word := range strings.Fields(string(libraries)) {
			if strings.HasPrefix(word, "/") {
				files = append(files, word)
			}
		}
	}
	slices.Sort(files)
	for _, path := range slices.Compact(files) {
		data, failed := os.ReadFile(path)
		if failed != nil {
			return "", failed
		}
		name := strings.TrimPrefix(path, "/")
		if !strings.HasPrefix(name, "usr/") {
			name = "usr/" + name
		}
		put(tar.Header{Name: name, Mode: 0o755}, string(data))
	}
	file := filepath.Join(dir, "base.tar")
	return file, errors.Join(err, w.Close(), os.WriteFile(file, out.Bytes(), 0o644))
})

// place is a store of images, and a builder that uses it.
type place struct {
	dir     string
	store   *images.Store
	builder *build.Builder
}

func newPlace(t *testing.T, dir string, change func(*build.Options)) *place {
	t.Helper()
	tarball, err := base()
	if err != nil {
		t.Fatal(err)
	}
	store, err := images.Open(images.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	opts := build.Options{
		Store: store, Map: map[string]string{"base": "tar:" + tarball}, Network: sandbox.NetworkLoopback, Now: time.Now,
		Open: func(images sandbox.ImageStore) (sandbox.Backend, error) {
			return sandbox.Open("native", sandbox.Options{StateDir: filepath.Join(dir, "state"), Images: images})
		},
	}
	if change != nil {
		change(&opts)
	}
	p := &place{dir: dir, store: store, builder: build.New(opts)}
	t.Cleanup(func() {
		if err := errors.Join(p.builder.Close(), p.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// source makes a directory with a Dockerfile and other files.
func source(t *testing.T, dockerfile string, files map[string]string) build.Source {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		name = filepath.Join(dir, name)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("Dockerfile", dockerfile)
	for name, content := range files {
		write(name, content)
	}
	return build.Source{Dir: dir}
}

// files lists an image: type, mode, owner, path, and what a file or link holds. The base's own files are left out.
func (p *place) files(t *testing.T, image build.Image) string {
	t.Helper()
	found, err := p.store.Find(context.Background(), image.Reference)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	view := p.store.View(found)
	err = view.Walk("/", func(h *tar.Header, open func() (*os.File, error)) error {
		for _, own := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc/passwd", "/etc/group"} {
			if h.Name == own || strings.HasPrefix(h.Name, own+"/") {
				return nil
			}
		}
		fmt.Fprintf(&all, "%c %04o %d:%d %s", h.Typeflag, h.Mode, h.Uid, h.Gid, h.Name)
		switch h.Typeflag {
		case tar.TypeSymlink:
			fmt.Fprintf(&all, " -> %s", h.Linkname)
		case tar.TypeReg:
			file, err := open()
			if err != nil {
				return err
			}
			defer file.Close()
			data, err := io.ReadAll(io.LimitReader(file, 200))
			if err != nil {
				return err
			}
			fmt.Fprintf(&all, " %q", data)
		}
		all.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func TestBuildRunsCommands(t *testing.T) {
	p := newPlace(t, t.TempDir(), nil)
	image, err := p.builder.Build(t.Context(), source(t, `FROM base
WORKDIR /work
RUN echo hello > greeting && mkdir -p a/b && ln -s greeting link && ln greeting hard && chmod 750 a && rm /root -r
COPY file /work/a/
USER app
RUN id -u > /home/app/who; pwd >> ~/who
`, map[string]string{"file": "content"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(p.files(t, image))
}
