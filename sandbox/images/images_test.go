//go:build linux

package images_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	dockertar "github.com/google/go-containerregistry/pkg/v1/tarball"

	"trajgen/sandbox"
	"trajgen/sandbox/images"
	"trajgen/sandbox/sandboxtest"
)

// hub is a registry on loopback that counts what is asked of it.
type hub struct {
	host string

	mu   sync.Mutex     // guards what follows
	gets map[string]int // by path
	hook func(w http.ResponseWriter, r *http.Request) bool

	real   http.Handler
	server *httptest.Server
}

// instead lets a function answer, which says whether it has.
func (h *hub) instead(hook func(w http.ResponseWriter, r *http.Request) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hook = hook
}

// blob returns what lies at the path of a layer or configuration, nil if that is not one.
func (h *hub) blob(t testing.TB, path string) []byte {
	if !strings.Contains(path, "/blobs/sha256:") {
		return nil
	}
	answer := httptest.NewRecorder()
	h.real.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return answer.Body.Bytes()
}

func newHub(t testing.TB) *hub {
	t.Helper()
	h := &hub{gets: map[string]int{}, real: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	h.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		if r.Method == http.MethodGet {
			h.gets[r.URL.Path]++
		}
		hook := h.hook
		h.mu.Unlock()
		if hook == nil || !hook(w, r) {
			h.real.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(h.server.Close)
	address, err := url.Parse(h.server.URL)
	if err != nil {
		t.Fatal(err)
	}
	h.host = address.Host
	return h
}

func (h *hub) push(t testing.TB, tag string, image v1.Image) (reference string) {
	t.Helper()
	ref, err := name.ParseReference(h.host + "/" + tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	return h.host + "/" + tag
}

// blobs returns how often each layer and configuration was sent.
func (h *hub) blobs() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	blobs := map[string]int{}
	for path, n := range h.gets {
		if strings.Contains(path, "/blobs/sha256:") {
			blobs[path] = n
		}
	}
	return blobs
}

func open(t testing.TB, opts images.Options) *images.Store {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = filepath.Join(t.TempDir(), "store")
	}
	store, err := images.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil && !errors.Is(err, os.ErrClosed) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Close: %v", err)
		}
	})
	return store
}

func find(t testing.TB, store *images.Store, reference string) sandbox.Image {
	t.Helper()
	image, err := store.Find(t.Context(), reference)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// small is an image with some of everything, in three layers.
func small(t testing.TB) v1.Image {
	return imageOf(t, v1.Config{Env: []string{"PATH=/bin", "X=1"}, WorkingDir: "/app", User: "daemon"},
		tarball(t, dirEntry("bin/", 0o755), fileEntry("bin/sh", "#!"), dirEntry("etc/", 0o755), fileEntry("etc/old", "old"), linkEntry("sbin", "bin"), hardEntry("bin/bash", "bin/sh")),
		tarball(t, dirEntry("etc/", 0o755), fileEntry("etc/.wh.old", ""), fileEntry("etc/new", "new")),
		tarball(t, dirEntry("app/", 0o755), fileEntry("app/main", strings.Repeat("x", 100_000))),
	)
}

// forOwner is what an ordinary user's store makes of owners.
func forOwner(t tree) tree {
	if os.Getuid() == 0 {
		return t
	}
	return t.without(owners)
}

// TestForms finds the same image in all the ways in which it can be kept.
func TestForms(t *testing.T) {
	image := small(t)
	want := flattened(t, image)
	dir := t.TempDir()
	ociDir := filepath.Join(dir, "layout")
	path, err := layout.Write(ociDir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "1.0"})); err != nil {
		t.Fatal(err)
	}
	other := imageOf(t, v1.Config{}, tarball(t, fileEntry("other", "")))
	otherDir := filepath.Join(dir, "two:layouts")
	if path, err = layout.Write(otherDir, empty.Index); err != nil {
		t.Fatal(err)
	}
	for tag, img := range map[string]v1.Image{"1.0": image, "other": other} {
		if err := path.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
			t.Fatal(err)
		}
	}
	ociTar := filepath.Join(dir, "oci.tar")
	shell(t, "tar", "-C", ociDir, "-cf", ociTar, ".")
	shell(t, "sh", "-c", `gzip -c "$1" > "$1.gz"`, "-", ociTar)
	tag, err := name.NewTag("example/small:1.0")
	if err != nil {
		t.Fatal(err)
	}
	dockerTar := filepath.Join(dir, "docker.tar")
	if err := dockertar.WriteToFile(dockerTar, tag, image); err != nil {
		t.Fatal(err)
	}
	shell(t, "sh", "-c", `gzip -c "$1" > "$1.gz"`, "-", dockerTar)
	flat := filepath.Join(dir, "flat.tar")
	shellTo(t, flat, mutate.Extract(image))
	data, err := os.ReadFile(flat)
	if err != nil {
		t.Fatal(err)
	}
	write(t, flat+".gz", gzipped(t, data))
	write(t, flat+".zst", zstded(t, data))
	root := filepath.Join(dir, "root")
	mkdir(t, root)
	shell(t, "tar", "-C", root, "-xpf", flat)
	hub := newHub(t)
	tagged := hub.push(t, "small:1.0", image)
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}

	tests := []struct {
		give   string
		config bool
		layers int
	}{
		{tagged, true, 3},
		{hub.host + "/small@" + digest.String(), true, 3},
		{tagged + "@" + digest.String(), true, 3},
		{"oci:" + ociDir, true, 3}, {"oci:" + ociDir + ":1.0", true, 3}, {"oci:" + ociDir + "@" + digest.String(), true, 3}, {ociDir, true, 3},
		{"oci:" + otherDir + ":1.0", true, 3}, {"oci:" + otherDir + "@" + digest.String(), true, 3},
		{"oci:" + ociTar, true, 3}, {ociTar, true, 3}, {ociTar + ".gz", true, 3}, {"oci:" + ociTar + ".gz:1.0", true, 3},
		{"docker-archive:" + dockerTar, true, 3}, {"docker-archive:" + dockerTar + ":example/small:1.0", true, 3}, {dockerTar, true, 3}, {dockerTar + ".gz", true, 3},
		{"tar:" + flat, false, 1}, {flat, false, 1}, {flat + ".gz", false, 1}, {"tar:" + flat + ".zst", false, 1},
		{"dir:" + root, false, 1}, {root, false, 1},
	}
	for _, tt := range tests {
		t.Run(strings.NewReplacer(dir, "", "/", "_", hub.host, "HOST", digest.Hex, "DIGEST").Replace(tt.give), func(t *testing.T) {
			store := open(t, images.Options{})
			got := find(t, store, tt.give)
			if tt.config && (strings.Join(got.Env, " ") != "PATH=/bin X=1" || got.Workdir != "/app" || got.User != "daemon") {
				t.Errorf("configuration %+v", got)
			}
			if len(got.Layers) != tt.layers {
				t.Errorf("layers %v, want %d", got.Layers, tt.layers)
			}
			want := forOwner(want)
			files := forOwner(seen(t, store, got))
			if strings.Contains(tt.give, "root") {
				// tar extracts into a directory that was made before.
				want, files = want.without(mtimes), files.without(mtimes)
			}
			if diff := cmp.Diff(want, files); diff != "" {
				t.Errorf("files (-want +got)\n%s", diff)
			}
			again := open(t, images.Options{Dir: store.Dir()})
			if diff := cmp.Diff(got, find(t, again, tt.give)); diff != "" {
				t.Errorf("another store finds another image (-first +second)\n%s", diff)
			}
		})
	}
}

// TestOnce pulls an image from many goroutines and processes at once.
func TestOnce(t *testing.T) {
	hub := newHub(t)
	reference := hub.push(t, "small:1.0", small(t))
	dir := filepath.Join(t.TempDir(), "store")
	store := open(t, images.Options{Dir: dir})
	var wait sync.WaitGroup
	found := make([]sandbox.Image, 20)
	for i := range 16 {
		wait.Go(func() {
			image, err := store.Find(t.Context(), reference)
			if err != nil {
				t.Errorf("Find: %v", err)
			}
			found[i] = image
		})
	}
	for i := range 4 {
		wait.Go(func() {
			if err := help(t, "find", false, &found[16+i], dir, reference); err != nil {
				t.Errorf("Find in another process: %v", err)
			}
		})
	}
	wait.Wait()
	for _, image := range found {
		if diff := cmp.Diff(found[0], image); diff != "" {
			t.Errorf("images differ\n%s", diff)
		}
	}
	layers, err := small(t).Layers()
	if err != nil {
		t.Fatal(err)
	}
	sent := hub.blobs()
	for _, l := range layers {
		digest, err := l.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if n := sent["/v2/small/blobs/"+digest.String()]; n != 1 {
			t.Errorf("layer %s was sent %d times, want once", digest, n)
		}
	}
}

// TestOrdinaryUser runs the other tests as somebody who is not root.
func TestOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this is not root already")
	}
	if testing.Short() {
		t.Skip("it takes as long as all others together")
	}
	const nobody = 65534
	dir, program := sandboxtest.Copy(t)
	cmd := exec.Command(program, "-test.v", "-test.run", "^Test")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "--- FAIL") {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestForms") {
		t.Errorf("nothing was asked:\n%s", out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "--- SKIP") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// TestList shows what is there.
func TestList(t *testing.T) {
	hub := newHub(t)
	image := small(t)
	reference := hub.push(t, "small:1.0", image)
	store := open(t, images.Options{})
	digest := find(t, store, reference).Digest
	list, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Digest != digest || len(list[0].References) != 1 || list[0].References[0] != reference || list[0].Layers != 3 || !list[0].InUse {
		t.Errorf("List = %+v, want %s as %s with 3 layers, in use", list, digest, reference)
	}
	if err := store.Remove(t.Context(), reference); !errors.Is(err, images.ErrInUse) {
		t.Errorf("Remove of what was found = %v, want %v", err, images.ErrInUse)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "images-")
	if err != nil {
		panic(err)
	}
	defer exec.Command("rm", "-r", dir).Run()
	if err := os.MkdirAll(dir+"/rootfs/etc", 0o755); err != nil {
		panic(err)
	}
	store, err := images.Open(images.Options{Dir: dir + "/store"})
	if err != nil {
		panic(err)
	}
	defer store.Close()
	image, err := store.Find(context.Background(), "dir:"+dir+"/rootfs")
	if err != nil {
		panic(err)
	}
	layers, err := os.ReadDir(filepath.Join(store.Dir(), image.Layers[0]))
	fmt.Println(len(image.Layers), layers, err)
	// Output: 1 [d etc/] <nil>
}

func shell(t testing.TB, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", program, args, err, out)
	}
}

func shellTo(t testing.TB, path string, from io.ReadCloser) {
	t.Helper()
	defer from.Close()
	data, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, data)
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}
