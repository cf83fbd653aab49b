//go:build linux

package build_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/sandbox"
	"trajgen/sandbox/images"
	"trajgen/sandbox/images/build"
	_ "trajgen/sandbox/native"
)

func TestMain(m *testing.M) {
	sandbox.Init()
	code := m.Run()
	if file, err := base(); err == nil {
		_ = os.RemoveAll(filepath.Dir(file))
	}
	os.Exit(code)
}

// programs are those of the base image, taken from this machine.
var programs = []string{"sh", "bash", "cat", "ls", "mkdir", "ln", "cp", "mv", "rm", "chmod", "chown", "id", "env", "stat", "find", "sort", "touch", "mkfifo", "tar", "sleep", "readlink", "tr"}

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
	close   func()
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
	p.close = sync.OnceFunc(func() {
		if err := errors.Join(p.builder.Close(), p.store.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(p.close)
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
		if own(h.Name) {
			return nil
		}
		var content []byte
		if h.Typeflag == tar.TypeReg {
			file, err := open()
			if err != nil {
				return err
			}
			defer file.Close()
			if content, err = io.ReadAll(io.LimitReader(file, 80)); err != nil {
				return err
			}
		}
		describe(&all, h.Name, h, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// tarball is what the Dockerfile of ADD unpacks.
func tarball(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	w := tar.NewWriter(&out)
	err := errors.Join(
		w.WriteHeader(&tar.Header{Name: "in/", Typeflag: tar.TypeDir, Mode: 0o750}),
		w.WriteHeader(&tar.Header{Name: "in/file", Typeflag: tar.TypeReg, Mode: 0o604, Uid: 3, Gid: 4, Size: 2}),
		func() error { _, err := io.WriteString(w, "in"); return err }(),
		w.WriteHeader(&tar.Header{Name: "in/hard", Typeflag: tar.TypeLink, Linkname: "in/file", Mode: 0o604}),
		w.WriteHeader(&tar.Header{Name: "in/link", Typeflag: tar.TypeSymlink, Linkname: "file", Mode: 0o777}),
		w.Close())
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func (d dockerfile) source(t *testing.T) build.Source {
	t.Helper()
	files := map[string]string{"made.tar": tarball(t)}
	if d.name != "add" {
		files = d.files
	} else {
		files["a.txt"] = "a"
	}
	s := source(t, d.text, files)
	s.Args, s.Target = d.args, d.target
	return s
}

var update = flag.Bool("update", false, "write the golden file")

func TestDockerfiles(t *testing.T) {
	p := newPlace(t, t.TempDir(), func(o *build.Options) { o.Secrets = map[string][]byte{"token": []byte("abc")} })
	var all strings.Builder
	for _, d := range dockerfiles {
		image, err := p.builder.Build(t.Context(), d.source(t))
		fmt.Fprintf(&all, "== %s\n", d.name)
		if err != nil {
			t.Errorf("%s: %v", d.name, err)
			continue
		}
		all.WriteString(p.files(t, image))
	}
	const golden = "testdata/TestDockerfiles.golden"
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(golden, []byte(all.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want, got := string(data), all.String()
	if os.Getuid() != 0 { // who has no other ids to give files
		want, got = owners.ReplaceAllString(want, "0"), owners.ReplaceAllString(got, "0")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of images (-want +got):\n%s", diff)
	}
}

// owners are those of files, and what commands print of themselves.
var owners = regexp.MustCompile(`\b\d+:\d+\b|"\d+( \d+)*\\n"`)

// TestDockerfilesOfAnotherUser builds the same as a user without rights.
func TestDockerfilesOfAnotherUser(t *testing.T) {
	const uid = 54321
	if os.Getuid() != 0 {
		return // then TestDockerfiles does so
	}
	dir, err := os.MkdirTemp("", "trajgen-build-user-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{program: "test", "testdata/TestDockerfiles.golden": "testdata/TestDockerfiles.golden"} {
		data, err := os.ReadFile(from)
		to = filepath.Join(dir, to)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.run", "^TestDockerfiles$")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestBuildAgain(t *testing.T) {
	dir := t.TempDir()
	p := newPlace(t, dir, nil)
	text, files := "FROM base\nCOPY early /early\nRUN cat /early > /a\nLABEL x=1\nCOPY late /late\nRUN cat /late > /b\n", map[string]string{"early": "1", "late": "1"}
	builds := []struct {
		name   string
		change func()
		made   int
	}{
		{"first", func() {}, 4},
		{"from another directory", func() {}, 0},
		{"with another label", func() { text = strings.Replace(text, "x=1", "x=2", 1) }, 0},
		{"with a file that is copied late", func() { files["late"] = "2" }, 2},
		{"with a file that is copied early", func() { files["early"] = "2" }, 4},
		{"with a file that is not copied", func() { files["other"] = "2" }, 0},
		{"with a variable", func() { text = strings.Replace(text, "COPY late", "ENV A=b\nCOPY late", 1) }, 1},
	}
	for _, b := range builds {
		b.change()
		image, err := p.builder.Build(t.Context(), source(t, text, files))
		if err != nil {
			t.Fatalf("%s: %v", b.name, err)
		}
		if image.Layers != 4 || image.Made != b.made {
			t.Errorf("%s: made %d of %d layers, want %d of 4", b.name, image.Made, image.Layers, b.made)
		}
	}
	other := newPlace(t, dir, nil)
	image, err := other.builder.Build(t.Context(), source(t, text, files))
	if err != nil || image.Made != 0 {
		t.Errorf("another runner made %d layers, want none (%v)", image.Made, err)
	}
}

func TestBuildersShareLayers(t *testing.T) {
	dir := t.TempDir()
	text := "FROM base\nRUN sleep 0.3; touch /made\n"
	var made atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		p := newPlace(t, dir, nil)
		for range 2 { // one source each: a builder shares builds of the same
			s := source(t, text, nil)
			all.Go(func() {
				image, err := p.builder.Build(context.Background(), s)
				if err != nil {
					t.Error(err)
				}
				made.Add(int64(image.Made))
			})
		}
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("the layer was made %d times, want once", made.Load())
	}
}

func TestBoundRemovesOldLayers(t *testing.T) {
	dir := t.TempDir()
	text := "FROM base\nRUN cat /usr/bin/bash > /big\n"
	p := newPlace(t, dir, func(o *build.Options) { o.MaxBytes = 1 })
	first, err := p.builder.Build(t.Context(), source(t, text, nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.store.Find(t.Context(), first.Reference); err != nil {
		t.Errorf("an image of an open store was removed: %v", err)
	}
	p.close()
	q := newPlace(t, dir, func(o *build.Options) { o.MaxBytes = 1 })
	if _, err := q.builder.Build(t.Context(), source(t, "FROM base\nRUN true\n", nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := q.store.Find(t.Context(), first.Reference); err == nil {
		t.Error("the image of a store that was closed is still there")
	}
	again, err := q.builder.Build(t.Context(), source(t, text, nil))
	if err != nil || again.Made != 1 {
		t.Errorf("made %d layers, want the one that was removed (%v)", again.Made, err)
	}
}

func TestBuildErrors(t *testing.T) {
	p := newPlace(t, t.TempDir(), nil)
	tests := []struct {
		name, text, reason string
		line               int
		want               string
	}{
		{"command fails", "FROM base\n\nRUN echo some words; exit 7\n", build.Command, 3, "exit status 7\nsome words"},
		{"command is missing", "FROM base\nRUN [\"/no/such\"]\n", build.Command, 2, "no such file"},
		{"file is missing", "FROM base\nCOPY nothing /\n", build.Copy, 2, "nothing is not there"},
		{"user is missing", "FROM base\nUSER who\nRUN true\n", build.Copy, 3, `lacks the user "who"`},
		{"image is missing", "FROM dir:/no/such\n", build.FromImage, 1, "/no/such"},
		{"words", "FROM base\nRUNN true\n", build.Parse, 2, "unknown instruction: RUNN"},
		{"no stage", "# nothing\n", build.Parse, 1, ""},
		{"git", "FROM base\nADD https://example.org/x.git /x\n", build.Unsupported, 2, "git repository"},
		{"ssh", "FROM base\nRUN --mount=type=ssh true\n", build.Unsupported, 2, "type=ssh"},
		{"insecure", "FROM base\nRUN --security=insecure true\n", build.Unsupported, 2, "security"},
		{"platform", "FROM --platform=linux/s390x base\n", build.Platform, 1, "linux/s390x"},
		{"mode", "FROM base\nCOPY --chmod=u+q d /\n", build.Parse, 2, "--chmod"},
		{"secret", "FROM base\nRUN --mount=type=secret,id=x,required=true true\n", build.Copy, 2, "secret x is required"},
		{"address", "FROM base\nADD http://127.0.0.1:1/file /\n", build.Network, 2, "may not be reached"},
		{"directory over a file", "FROM base\nRUN mkdir /d && touch /d/sub\nCOPY d /d\n", build.Copy, 3, "something else in the image"},
	}
	for _, tt := range tests {
		_, err := p.builder.Build(t.Context(), source(t, tt.text, map[string]string{"d/sub/x": "x"}))
		e, ok := errors.AsType[*build.Error](err)
		if !ok || e.Reason != tt.reason || e.Line != tt.line || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v (%+v), want the reason %q, line %d and %q", tt.name, err, e, tt.reason, tt.line, tt.want)
		}
	}
}

func TestRefusedConnections(t *testing.T) {
	p := newPlace(t, t.TempDir(), func(o *build.Options) {
		o.Network, o.Allow = sandbox.NetworkAllowlist, []string{"allowed.example"}
	})
	for _, text := range []string{"RUN bash -c ': > /dev/tcp/refused.example/80'", "ADD http://refused.example/file /"} {
		_, err := p.builder.Build(t.Context(), source(t, "FROM base\n"+text+"\n", nil))
		e, ok := errors.AsType[*build.Error](err)
		if !ok || e.Reason != build.Network || !strings.Contains(err.Error(), "refused.example") || !strings.Contains(err.Error(), "build_allow") {
			t.Errorf("%s: %v (%+v), want the reason %q, the host and what allows it", text, err, e, build.Network)
		}
	}
}

func TestSecretsAreNotKept(t *testing.T) {
	dir := t.TempDir()
	const secret = "a-secret-that-is-easy-to-find"
	p := newPlace(t, dir, func(o *build.Options) { o.Secrets = map[string][]byte{"token": []byte(secret)} })
	image, err := p.builder.Build(t.Context(), source(t, `FROM base
RUN --mount=type=secret,id=token --mount=type=secret,id=token,env=TOKEN test "$TOKEN" = "$(cat /run/secrets/token)" && touch /same
`, nil))
	if err != nil {
		t.Fatal(err)
	}
	if files := p.files(t, image); !strings.Contains(files, "/same") || strings.Contains(files, "/run") {
		t.Errorf("files of the image:\n%s", files)
	}
	err = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
