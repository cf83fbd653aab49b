//go:build linux

package build_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trajgen/sandbox"
	_ "trajgen/sandbox/docker"
	"trajgen/sandbox/images/build"
	"trajgen/sandbox/sandboxtest"
)

// newer are what engines do only with a builder of their own beside them.
var newer = []string{"<<", "--mount", "--chmod", "--parents", "--exclude", "--link", "--network", "--unpack", "TARGET", "chown=7", "/home/app/own", "RUN exit 1", "VOLUME"}

// engine is a container engine of the test, asked through docker's program.
type engine struct {
	*testing.T
	name, host string
}

// eachEngine runs a test with every engine that scripts/engine starts.
func eachEngine(t *testing.T, test func(e engine)) {
	for name, variable := range map[string]string{"docker": "DOCKER_HOST", "podman": "CONTAINER_HOST"} {
		t.Run(name, func(t *testing.T) {
			host := os.Getenv(variable)
			if host == "" {
				sandboxtest.Require(t, name, errors.New("no engine for tests (scripts/engine starts one)"))
			}
			t.Parallel()
			test(engine{t, name, host})
		})
	}
}

func (e engine) run(args ...string) []byte {
	e.Helper()
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.host, "DOCKER_BUILDKIT=0")
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		e.Fatalf("docker %q: %v\n%s", args, err, errOut.String())
	}
	return out
}

// files lists an image's files as place.files does.
func (e engine) files(image string) string {
	e.Helper()
	container := strings.TrimSpace(string(e.run("create", image, "true")))
	defer e.run("rm", container)
	return listTar(e.T, e.run("export", container))
}

// TestDockerfilesLikeDocker builds the Dockerfiles with docker, too, and compares the files.
func TestDockerfilesLikeDocker(t *testing.T) {
	eachEngine(t, func(e engine) {
		if e.name != "docker" {
			return
		}
		tarball, err := base()
		if err != nil {
			e.Fatal(err)
		}
		e.run("import", tarball, "base:latest")
		defer e.run("rmi", "-f", "base:latest")
		p := newPlace(e.T, e.TempDir(), nil)
		compared := 0
		var ours, theirs [2]time.Duration // of a first build and of another
		for _, d := range dockerfiles {
			if slices.ContainsFunc(newer, func(word string) bool { return strings.Contains(d.text, word) }) {
				continue
			}
			compared++
			source := d.source(e.T)
			args := []string{"build", "-q", "--network=none"}
			for key, value := range d.args {
				args = append(args, "--build-arg", key+"="+value)
			}
			if d.target != "" {
				args = append(args, "--target", d.target)
			}
			var image build.Image
			var id string
			for again := range 2 {
				began := time.Now()
				id = strings.TrimSpace(string(e.run(append(args, source.Dir)...)))
				theirs[again] += time.Since(began)
				began = time.Now()
				// A builder of its own: one builds nothing twice.
				other := newPlace(e.T, p.dir, nil)
				if image, err = other.builder.Build(e.Context(), source); err != nil {
					e.Fatalf("%s: %v", d.name, err)
				}
				other.close()
				ours[again] += time.Since(began)
			}
			if diff := cmp.Diff(e.files(id), p.files(e.T, image)); diff != "" {
				e.Errorf("%s: files (-docker +ours):\n%s", d.name, diff)
			}
		}
		if compared < 12 {
			e.Errorf("%d Dockerfiles were compared", compared)
		}
		e.Logf("%d Dockerfiles, first and again: docker %.1f s and %.1f s, ours %.1f s and %.2f s", compared,
			theirs[0].Seconds(), theirs[1].Seconds(), ours[0].Seconds(), ours[1].Seconds())
	})
}

// TestImportedByEngines gives engines the images that were built here: files are the same, and so is what a test in them says.
func TestImportedByEngines(t *testing.T) {
	eachEngine(t, func(e engine) {
		p := newPlace(e.T, e.TempDir(), nil)
		backend, err := sandbox.Open(e.name, sandbox.Options{StateDir: e.TempDir(), Settings: map[string]string{"host": e.host}})
		if err != nil {
			e.Fatal(err)
		}
		defer backend.Close()
		for _, d := range dockerfiles {
			if !slices.Contains([]string{"users", "scratch", "globs", "removals", "kinds of files", "modes of directories"}, d.name) {
				continue
			}
			image, err := p.builder.Build(e.Context(), d.source(e.T))
			if err != nil {
				e.Fatalf("%s: %v", d.name, err)
			}
			reference := p.give(e.T, backend, image)
			if again := p.give(e.T, backend, image); again != reference {
				e.Errorf("%s: given again, it is %s, want %s", d.name, again, reference)
			}
			if diff := cmp.Diff(p.files(e.T, image), e.files(reference)); diff != "" {
				e.Errorf("%s: files (-ours +%s):\n%s", d.name, e.name, diff)
			}
		}
		image, err := p.builder.Build(e.Context(), source(e.T, settingsDockerfile, nil))
		if err != nil {
			e.Fatal(err)
		}
		native, err := sandbox.Open("native", sandbox.Options{StateDir: e.TempDir(), Images: p.store})
		if err != nil {
			e.Fatal(err)
		}
		defer native.Close()
		want, got := probe(e.T, native, image.Reference), probe(e.T, backend, p.give(e.T, backend, image))
		if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(want, "two words") {
			e.Errorf("what a test says (-native +%s):\n%s", e.name, diff)
		}
	})
}

// TestBuiltByEngines has engines build where native sandboxes cannot run.
func TestBuiltByEngines(t *testing.T) {
	eachEngine(t, func(e engine) {
		backend, err := sandbox.Open(e.name, sandbox.Options{StateDir: e.TempDir(), Settings: map[string]string{"host": e.host}})
		if err != nil {
			e.Fatal(err)
		}
		defer backend.Close()
		tarball, err := base()
		if err != nil {
			e.Fatal(err)
		}
		e.run("import", tarball, "trajgen.test/base:latest")
		p := newPlace(e.T, e.TempDir(), nil)
		builder := func(network sandbox.Network) *build.Builder {
			b := build.New(build.Options{Engine: backend.(build.Engine), Network: network, Now: time.Now})
			e.Cleanup(func() { _ = b.Close() })
			return b
		}
		for _, d := range dockerfiles {
			if !slices.Contains([]string{"target", "environment", "users", "removals"}, d.name) {
				continue
			}
			want, err := p.builder.Build(e.Context(), d.source(e.T))
			if err != nil {
				e.Fatal(err)
			}
			d.text = strings.ReplaceAll(d.text, "FROM base", "FROM trajgen.test/base")
			got, err := builder(sandbox.NetworkLoopback).Build(e.Context(), d.source(e.T))
			if err != nil {
				e.Errorf("%s: %v", d.name, err)
				continue
			}
			theirs := strings.ReplaceAll(e.files(got.Reference), "5 0755 0:0 /run\n", "") // podman's, for secrets
			if diff := cmp.Diff(p.files(e.T, want), theirs); diff != "" {
				e.Errorf("%s: files (-native +%s):\n%s", d.name, e.name, diff)
			}
		}
		for _, tt := range []struct{ text, reason, want string }{
			{"FROM trajgen.test/base\nRUN echo these words; exit 3\n", build.Command, "these words"},
			{"FROM trajgen.test/base\nCOPY nothing /\n", build.Copy, "nothing"},
			{"FROM trajgen.test/base\nRUNN true\n", build.Parse, "RUNN"},
			{"FROM trajgen.invalid/none\n", build.FromImage, "trajgen.invalid/none"},
		} {
			_, err := builder(sandbox.NetworkFull).Build(e.Context(), source(e.T, tt.text, nil))
			failed, ok := errors.AsType[*build.Error](err)
			if !ok || failed.Reason != tt.reason || !strings.Contains(err.Error(), tt.want) {
				e.Errorf("%q: %v (%+v), want the reason %q and %q", tt.text, err, failed, tt.reason, tt.want)
			}
		}
		if _, err := builder("").Build(e.Context(), source(e.T, "FROM trajgen.test/base\n", nil)); err == nil || !strings.Contains(err.Error(), "build_network") {
			e.Errorf("a network that the engine does not have: %v", err)
		}
	})
}

// TestBuiltBesideRemovals has engines say what podman says to a build when another client removes an image meanwhile.
func TestBuiltBesideRemovals(t *testing.T) {
	eachEngine(t, func(e engine) {
		tarball, err := base()
		if err != nil {
			e.Fatal(err)
		}
		e.run("import", tarball, "trajgen.test/base:latest")
		socket := strings.TrimPrefix(e.host, "unix://")
		var asked, lost atomic.Int32
		through := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine" },
			Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }},
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/build") && asked.Add(1) <= lost.Load() {
				_, _ = io.WriteString(w, `{"error":"checking if cached image exists from a previous build: getting top layer info: layer not known"}`)
				return
			}
			through.ServeHTTP(w, r)
		}))
		defer server.Close()
		host := "tcp://" + server.Listener.Addr().String()
		backend, err := sandbox.Open(e.name, sandbox.Options{StateDir: e.TempDir(), Settings: map[string]string{"host": host}})
		if err != nil {
			e.Fatal(err)
		}
		defer backend.Close()
		builder := build.New(build.Options{Engine: backend.(build.Engine), Network: sandbox.NetworkLoopback, Now: time.Now})
		defer builder.Close()
		for _, tt := range []struct{ lost, asked int32 }{{lost: 2, asked: 3}, {lost: 100, asked: 5}} {
			asked.Store(0)
			lost.Store(tt.lost)
			text := fmt.Sprintf("FROM trajgen.test/base\nENV LOST=%d\n", tt.lost)
			_, err := builder.Build(e.Context(), source(e.T, text, nil))
			if failed := err != nil; failed != (tt.lost > tt.asked) || failed && !strings.Contains(err.Error(), "layer not known") || asked.Load() != tt.asked {
				e.Errorf("lost %d times: asked %d times, want %d: %v", tt.lost, asked.Load(), tt.asked, err)
			}
		}
	})
}

// give has a backend import an image, under a name that says what is in it.
func (p *place) give(t *testing.T, to sandbox.Backend, built build.Image) (reference string) {
	t.Helper()
	reference = "trajgen.test/imported:" + strings.TrimPrefix(built.Digest, "sha256:")
	image, err := p.store.Find(t.Context(), built.Reference)
	if err == nil {
		err = to.(sandbox.Importer).Import(t.Context(), reference, image, func(w io.Writer) error { return p.store.Tar(image, w) })
	}
	if err != nil {
		t.Fatalf("%s: %v", reference, err)
	}
	return reference
}

const settingsDockerfile = `FROM base
ENV A="two words" B='a "quoted" $HOME \\ value' C=""
WORKDIR /srv/a b
RUN echo kept > file && chmod 640 file && chown app:extra file && ln file hard && ln -s file link
`

// probe says what a sandbox of an image looks like from inside.
func probe(t *testing.T, backend sandbox.Backend, image string) string {
	t.Helper()
	sb, err := backend.Open(t.Context(), sandbox.Spec{ID: "probe", Image: image})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Close()
	const script = `echo "$A|$B|$C|$PWD|$(id -u):$(id -g)"; stat -c "%F %a %u:%g %h %N" file hard link; cat file 2>&1 || true`
	r, err := sandbox.Run(t.Context(), sb, sandbox.Command{Args: []string{"/bin/sh", "-c", script}}, sandbox.RunOptions{Merge: true})
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Stdout.Bytes())
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
	if name == "/etc" { // which engines add to what has none
		return true
	}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc/passwd", "/etc/group", "/dev", "/proc", "/sys"} {
		if name == dir || strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}
