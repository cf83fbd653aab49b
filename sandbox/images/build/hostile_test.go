//go:build linux

package build_test

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"trajgen/sandbox"
	"trajgen/sandbox/images/build"
)

// tarballOf writes a tarball beside a Dockerfile. Regular files hold a word, or as many zeros as their headers say.
func tarballOf(t *testing.T, path string, entries ...tar.Header) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := tar.NewWriter(file)
	for _, h := range entries {
		var content io.Reader
		h.Mode = 0o644
		switch {
		case h.Typeflag == tar.TypeReg && h.Size == 0:
			h.Size, content = 4, strings.NewReader("word")
		case h.Typeflag == tar.TypeReg:
			zeros, err := os.Open("/dev/zero")
			if err != nil {
				t.Fatal(err)
			}
			defer zeros.Close()
			content = io.LimitReader(zeros, h.Size)
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if content != nil {
			if _, err := io.Copy(w, content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNothingLeadsOut has links and names that lead out of the directory, of a stage and of a tarball's place.
func TestNothingLeadsOut(t *testing.T) {
	p := newPlace(t, t.TempDir(), nil)
	s := source(t, `FROM base AS made
RUN ln -s / /root/up && ln -s /proc/self/root/etc /root/proc
FROM base
COPY safe /in/safe
COPY --from=made /root /in/root
ADD evil.tar /in/tar/
`, nil)
	outside := filepath.Join(t.TempDir(), "outside")
	err := errors.Join(os.WriteFile(outside, []byte("secret"), 0o600), os.Mkdir(filepath.Join(s.Dir, "safe"), 0o755),
		os.Symlink(outside, filepath.Join(s.Dir, "safe/link")), os.Symlink("/", filepath.Join(s.Dir, "safe/up")),
		os.Symlink(filepath.Dir(outside), filepath.Join(s.Dir, "dir")), syscall.Mkfifo(filepath.Join(s.Dir, "safe/pipe"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	tarballOf(t, filepath.Join(s.Dir, "evil.tar"),
		tar.Header{Typeflag: tar.TypeReg, Name: "../../../up"}, tar.Header{Typeflag: tar.TypeReg, Name: "/abs"},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "link", Linkname: filepath.Dir(outside)},
		tar.Header{Typeflag: tar.TypeReg, Name: "link/outside"},
		tar.Header{Typeflag: tar.TypeLink, Name: "hard", Linkname: "../../../up"})
	image, err := p.builder.Build(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	files := p.files(t, image)
	for _, want := range []string{"/in/tar/up", "/in/tar/abs", "/in/tar/hard", "/in/safe/link -> " + outside, "/in/safe/up -> /\n", "/in/root/up -> /\n", "/in/root/proc -> /proc/self/root/etc\n"} {
		if !strings.Contains(files, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "secret" || strings.Contains(files, "secret") {
		t.Errorf("the file outside was read or changed: %s (%v)\n%s", data, err, files)
	}
	for name, text := range map[string]string{"file": "COPY safe/link /x", "directory": "COPY dir/outside /x", "above": "COPY ../outside /x", "root": "COPY safe/up/etc/passwd /x"} {
		s.Dockerfile = name
		if err := os.WriteFile(filepath.Join(s.Dir, name), []byte("FROM base\n"+text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		image, err := p.builder.Build(t.Context(), s)
		if err == nil && !strings.Contains(p.files(t, image), "/x -> "+outside) {
			t.Errorf("%s was built:\n%s", text, p.files(t, image))
		}
	}
}

// TestHostileFiles are a pipe in place of a file that is read, and tarballs that are small until they are unpacked.
func TestHostileFiles(t *testing.T) {
	p := newPlace(t, t.TempDir(), func(o *build.Options) { o.Limits = sandbox.Limits{Disk: 64 << 20} })
	fails := func(s build.Source, want string) {
		t.Helper()
		if _, err := p.builder.Build(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, name := range []string{"Dockerfile", ".dockerignore"} {
		s := source(t, "FROM base\n", nil)
		_ = os.Remove(filepath.Join(s.Dir, name))
		if err := syscall.Mkfifo(filepath.Join(s.Dir, name), 0o644); err != nil {
			t.Fatal(err)
		}
		fails(s, "not a regular file")
	}
	s := source(t, "FROM base\nADD bomb.tar /\n", nil)
	tarballOf(t, filepath.Join(s.Dir, "bomb.tar"), tar.Header{Typeflag: tar.TypeReg, Name: "a", Size: 40 << 20}, tar.Header{Typeflag: tar.TypeReg, Name: "b", Size: 40 << 20})
	fails(s, "a layer may have 67108864 bytes")
	fails(source(t, "FROM base\nRUN while :; do cat /usr/bin/bash >> /big || exit 9; done\n", nil), "at the limit of disk")
}
