//go:build linux

package images_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	dockertar "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"trajgen/sandbox/images"
)

// TestKilled kills a process in the middle of a layer; the next one begins again, and nothing is left.
func TestKilled(t *testing.T) {
	hub := newHub(t)
	reference := hub.push(t, "big:1", imageOf(t, v1.Config{},
		tarball(t, fileEntry("small", "s")), tarball(t, dirEntry("d/", 0), fileEntry("d/big", noise(4<<20)))))
	dir := filepath.Join(t.TempDir(), "store")
	// Every layer stops half way until the process is dead.
	var slow atomic.Bool
	reached := make(chan struct{}, 10)
	hub.instead(func(w http.ResponseWriter, r *http.Request) bool {
		if !slow.Load() || r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		data := hub.blob(t, r.URL.Path)
		if len(data) < 1<<20 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		reached <- struct{}{}
		<-r.Context().Done()
		return true
	})
	slow.Store(true)
	for range 3 {
		cmd := helper(t, "find", false, dir, reference)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-reached
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	if left, err := os.ReadDir(dir + "/tmp"); err != nil || len(left) == 0 {
		t.Fatalf("nothing is left of a process that was killed: %v", err)
	}
	slow.Store(false)
	var log bytes.Buffer
	store := open(t, images.Options{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	checkEmpty(t, store, false)
	if !strings.Contains(log.String(), "dead process") {
		t.Errorf("log: %s", log.String())
	}
	if files := seen(t, store, find(t, store, reference)); files["d/big"].Content != contentHash([]byte(noise(4<<20))) {
		t.Error("the big file is another one")
	}
	if users, err := os.ReadDir(dir + "/users"); err != nil || len(users) != 1 {
		t.Errorf("users: %s %v, want this store alone", names(users), err)
	}
}

// TestKilledAnywhere kills processes at all sorts of moments, and removes what they got done in between.
func TestKilledAnywhere(t *testing.T) {
	hub := newHub(t)
	reference := hub.push(t, "small:1", small(t))
	dir := filepath.Join(t.TempDir(), "store")
	for n := range 24 {
		cmd := helper(t, "find", false, dir, reference)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(n) * 2 * time.Millisecond)
		_ = cmd.Process.Kill() // unless it is done
		_ = cmd.Wait()
		if n%6 == 5 {
			store := open(t, images.Options{Dir: dir})
			if err := store.Remove(t.Context(), reference); err != nil && !errors.Is(err, images.ErrNotStored) {
				t.Errorf("Remove: %v", err)
			}
			if err := store.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	store := open(t, images.Options{Dir: dir})
	if diff := cmp.Diff(forOwner(flattened(t, small(t))), forOwner(seen(t, store, find(t, store, reference)))); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
	other := open(t, images.Options{Dir: dir})
	if err := errors.Join(store.Close(), other.Remove(t.Context(), reference)); err != nil {
		t.Error(err)
	}
	checkEmpty(t, other, true)
}

// TestAlive shows that the work of a process that lives is left alone.
func TestAlive(t *testing.T) {
	hub := newHub(t)
	reference := hub.push(t, "big:1", imageOf(t, v1.Config{}, tarball(t, fileEntry("big", noise(4<<20)))))
	dir := filepath.Join(t.TempDir(), "store")
	reached, goOn := make(chan struct{}), make(chan struct{})
	hub.instead(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") {
			return false
		}
		data := hub.blob(t, r.URL.Path)
		if len(data) < 1<<20 {
			return false
		}
		_, _ = w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		close(reached) // a second time is an error
		<-goOn
		_, _ = w.Write(data[len(data)/2:])
		return true
	})
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := help(t, "find", false, &struct{}{}, dir, reference); err != nil {
			t.Errorf("Find: %v", err)
		}
	})
	<-reached
	store := open(t, images.Options{Dir: dir})
	other := filepath.Join(t.TempDir(), "other.tar")
	write(t, other, tarball(t, fileEntry("x", "")))
	find(t, store, other)
	// Removing another image collects layers, but not those that are being put together.
	second := open(t, images.Options{Dir: dir})
	if err := errors.Join(store.Close(), second.Remove(t.Context(), other)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := second.Find(ctx, reference); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Find while another process fetches = %v, want %v", err, context.DeadlineExceeded)
	}
	close(goOn)
	wait.Wait()
	find(t, second, reference)
}

// TestFull fills a disk.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.tar")
	write(t, path, tarball(t, dirEntry("d/", 0o500), fileEntry("d/big", noise(12<<20))))
	var got []string
	if err := help(t, "full", true, &got, t.TempDir(), "8m", path, fmt.Sprint(os.Getuid())); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got[0], "is full") || !strings.Contains(got[0], "--image-dir") || got[1] != "0 0" {
		t.Errorf("on a full disk: %q", got)
	}
}

// TestProbe opens a store where layers cannot be.
func TestProbe(t *testing.T) {
	var got string
	if err := help(t, "ramfs", true, &got, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(got, "attributes") || !strings.Contains(got, "--image-dir") {
		t.Errorf("Open = %q, want what is missing and what to do", got)
	}
}

// TestKinds shows that layers with owners and without do not mix.
func TestKinds(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root has both")
	}
	dir := t.TempDir()
	path := filepath.Join(t.TempDir(), "root.tar")
	write(t, path, tarball(t, fileEntry("closed", "x").with(func(h *tar.Header) { h.Mode = 0; h.Uid = 7 })))
	store := open(t, images.Options{Dir: dir, Unprivileged: true})
	info, err := os.Stat(filepath.Join(store.Dir(), find(t, store, path).Layers[0], "closed"))
	if err != nil || info.Mode() != 0o400 || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("closed: %v %v, want it readable and root's", info, err)
	}
	if _, err := images.Open(images.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another kind") {
		t.Errorf("Open as another kind = %v", err)
	}
}

// TestTags shows what a tag means: one thing for each store, the newest for the next, the last one known without a
// registry.
func TestTags(t *testing.T) {
	hub := newHub(t)
	first, second := small(t), imageOf(t, v1.Config{}, tarball(t, fileEntry("second", "")))
	reference := hub.push(t, "moving:latest", first)
	store := open(t, images.Options{})
	a := find(t, store, reference)
	hub.push(t, "moving:latest", second)
	if b := find(t, store, reference); b.Digest != a.Digest {
		t.Errorf("the same store finds %s, and before %s", b.Digest, a.Digest)
	}
	next := open(t, images.Options{Dir: store.Dir()})
	b := find(t, next, reference)
	if want, _ := second.Digest(); b.Digest != want.String() {
		t.Errorf("the next store finds %s, want %s", b.Digest, want)
	}
	// Without a name, the first one is still there.
	pinned := find(t, next, hub.host+"/moving@"+a.Digest)
	if pinned.Digest != a.Digest {
		t.Errorf("pinned: %s, want %s", pinned.Digest, a.Digest)
	}
	hub.server.Close()
	var log bytes.Buffer
	offline := open(t, images.Options{Dir: store.Dir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if c := find(t, offline, reference); c.Digest != b.Digest || !strings.Contains(log.String(), "does not answer") {
		t.Errorf("without the registry: %s, want %s and a warning: %s", c.Digest, b.Digest, log.String())
	}
	if d := find(t, offline, hub.host+"/moving@"+a.Digest); d.Digest != a.Digest {
		t.Errorf("pinned, without the registry: %s, want %s", d.Digest, a.Digest)
	}
	if _, err := offline.Find(t.Context(), hub.host+"/unknown:1"); err == nil {
		t.Error("an unknown image is found without the registry")
	}
}

// TestPlatforms picks the image of this machine from an index.
func TestPlatforms(t *testing.T) {
	hub := newHub(t)
	mine, other := platformImage(t, "mine", false), platformImage(t, "other", true)
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex),
		mutate.IndexAddendum{Add: other.image, Descriptor: v1.Descriptor{Platform: &other.platform}},
		mutate.IndexAddendum{Add: mine.image, Descriptor: v1.Descriptor{Platform: &mine.platform}})
	ref, err := name.ParseReference(hub.host + "/multi:1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref, index); err != nil {
		t.Fatal(err)
	}
	store := open(t, images.Options{})
	got := find(t, store, ref.Name())
	if want, _ := mine.image.Digest(); got.Digest != want.String() {
		t.Errorf("found %s, want this machine's %s", got.Digest, want)
	}
	indexDigest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	before := len(hub.blobs())
	for _, pin := range []string{indexDigest.String(), got.Digest} {
		if same := find(t, store, hub.host+"/multi@"+pin); same.Digest != got.Digest {
			t.Errorf("pinned to %s: %s, want %s", pin, same.Digest, got.Digest)
		}
	}
	if after := len(hub.blobs()); after != before {
		t.Errorf("what was there is fetched again")
	}
	wrong := hub.push(t, "wrong:1", other.image)
	if _, err := store.Find(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), other.platform.Architecture) {
		t.Errorf("Find of another machine's = %v, want an error that names it", err)
	}
}

// TestForged serves something else than was asked for.
func TestForged(t *testing.T) {
	data := tarball(t, fileEntry("f", "true"))
	lie := packed{Layer: pack(data, gzipped(t, tarball(t, fileEntry("f", "false"))), types.OCILayer), plain: data}
	lie.diffID, _ = pack(data, data, types.OCILayer).DiffID()
	forged, err := mutate.AppendLayers(empty.Image, lie)
	if err != nil {
		t.Fatal(err)
	}
	hub := newHub(t)
	store := open(t, images.Options{})
	reference := hub.push(t, "forged:1", forged)
	if _, err := store.Find(t.Context(), reference); err == nil || !strings.Contains(err.Error(), "damaged or forged") {
		t.Errorf("a layer that is not what the image says: %v", err)
	}
	checkEmpty(t, store, true)

	good := small(t)
	reference = hub.push(t, "good:1", good)
	digest, _ := good.Digest()
	hub.instead(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.Contains(r.URL.Path, "/good/manifests/") && r.Method == http.MethodGet {
			r.URL.Path = "/v2/forged/manifests/1"
		}
		return false
	})
	if _, err := store.Find(t.Context(), hub.host+"/good@"+digest.String()); err == nil {
		t.Error("a pinned image is replaced by another one")
	}
	hub.instead(func(w http.ResponseWriter, r *http.Request) bool {
		if data := hub.blob(t, r.URL.Path); len(data) > 0 && r.Method == http.MethodGet {
			data = bytes.Clone(data)
			data[len(data)/2] ^= 1
			_, _ = w.Write(data)
			return true
		}
		return false
	})
	if _, err := store.Find(t.Context(), reference); err == nil {
		t.Error("blobs that were changed on the way are taken")
	}
	checkEmpty(t, store, true)
}

// TestBrokenConnection loses a layer half way, twice.
func TestBrokenConnection(t *testing.T) {
	hub := newHub(t)
	reference := hub.push(t, "broken:1", imageOf(t, v1.Config{}, tarball(t, dirEntry("d/", 0o500), fileEntry("d/f", noise(1<<20)))))
	var broken atomic.Int32
	hub.instead(func(w http.ResponseWriter, r *http.Request) bool {
		data := hub.blob(t, r.URL.Path)
		if len(data) < 1<<20 || r.Method != http.MethodGet || broken.Add(1) > 2 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		return true
	})
	store := open(t, images.Options{})
	if files := seen(t, store, find(t, store, reference)); files["d/f"].Content != contentHash([]byte(noise(1<<20))) {
		t.Error("the file is another one")
	}
	if n := broken.Load(); n != 3 {
		t.Errorf("the layer was asked for %d times, want 3", n)
	}
}

// TestPassword finds an image that is not everybody's.
func TestPassword(t *testing.T) {
	hub := newHub(t)
	image := small(t)
	hub.push(t, "private:1", image)
	hub.instead(func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "me" && password == "hunter2" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	t.Setenv("HOME", t.TempDir())
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	store := open(t, images.Options{})
	if _, err := store.Find(t.Context(), hub.host+"/private:1"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("without a password: %v", err)
	}
	auth := base64.StdEncoding.EncodeToString([]byte("me:hunter2"))
	write(t, config+"/config.json", fmt.Appendf(nil, `{"auths":{%q:{"auth":%q}}}`, hub.host, auth))
	if _, err := authn.DefaultKeychain.Resolve(registryOf(t, hub.host)); err != nil {
		t.Fatal(err)
	}
	find(t, store, hub.host+"/private:1")
}

// TestRemove removes images and what nobody else needs.
func TestRemove(t *testing.T) {
	hub := newHub(t)
	shared, own := tarball(t, fileEntry("shared", "")), tarball(t, dirEntry("closed/", 0), fileEntry("closed/own", ""))
	a := hub.push(t, "a:1", imageOf(t, v1.Config{}, shared, own))
	b := hub.push(t, "b:1", imageOf(t, v1.Config{}, shared))
	c := hub.push(t, "c:1", imageOf(t, v1.Config{}, shared, own))
	dir := filepath.Join(t.TempDir(), "store")
	pull := open(t, images.Options{Dir: dir})
	imageA, imageB := find(t, pull, a), find(t, pull, b)
	find(t, pull, c)
	other := open(t, images.Options{Dir: dir})
	if err := other.Remove(t.Context(), c); err != nil {
		t.Errorf("Remove of one of two names: %v", err)
	}
	if err := other.Remove(t.Context(), a); !errors.Is(err, images.ErrInUse) {
		t.Errorf("Remove of what another store has found = %v, want %v", err, images.ErrInUse)
	}
	if err := pull.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Remove(t.Context(), a); err != nil {
		t.Errorf("Remove: %v", err)
	}
	if err := other.Remove(t.Context(), a); !errors.Is(err, images.ErrNotStored) {
		t.Errorf("Remove again = %v, want %v", err, images.ErrNotStored)
	}
	if _, err := os.Stat(filepath.Join(dir, imageA.Layers[0])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the layer of no other image: %v, want it gone", err)
	}
	if _, err := os.Stat(filepath.Join(dir, imageB.Layers[0])); err != nil {
		t.Errorf("the layer of another image: %v", err)
	}
	list, err := other.List(t.Context())
	if err != nil || len(list) != 1 || list[0].InUse {
		t.Errorf("List = %+v, %v; want b, not in use", list, err)
	}
	if err := other.Remove(t.Context(), imageB.Digest); err != nil {
		t.Errorf("Remove by digest: %v", err)
	}
	checkEmpty(t, other, true)
	// A process that dies lets go of what it had found.
	find(t, other, a)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := helper(t, "find", false, dir, a, "wait")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stdout, make([]byte, len("found\n"))); err != nil {
		t.Fatal(err)
	}
	last := open(t, images.Options{Dir: dir})
	if err := last.Remove(t.Context(), a); !errors.Is(err, images.ErrInUse) {
		t.Errorf("Remove of what another process has found = %v, want %v", err, images.ErrInUse)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := last.Remove(t.Context(), a); err != nil {
		t.Errorf("Remove after the process that had found it is dead: %v", err)
	}
	checkEmpty(t, last, true)
}

// TestCancel gives up on an image while others wait for it.
func TestCancel(t *testing.T) {
	hub := newHub(t)
	reference := hub.push(t, "slow:1", small(t))
	goOn := make(chan struct{})
	reached := make(chan struct{}, 100)
	hub.instead(func(http.ResponseWriter, *http.Request) bool {
		reached <- struct{}{}
		<-goOn
		return false
	})
	store := open(t, images.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := store.Find(t.Context(), reference); err != nil {
			t.Errorf("Find of the one who waits: %v", err)
		}
	})
	<-reached
	why := errors.New("changed my mind")
	wait.Go(func() {
		if _, err := store.Find(ctx, reference); !errors.Is(err, why) {
			t.Errorf("Find of the one who does not = %v, want %v", err, why)
		}
	})
	cancel(why)
	close(goOn)
	wait.Wait()
	hub.instead(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := store.Find(ctx, hub.host+"/other:1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Find = %v, want %v", err, context.DeadlineExceeded)
	}
}

// TestReferences shows what people are told.
func TestReferences(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, dir+"/d")
	write(t, dir+"/text", []byte("no tarball"))
	write(t, dir+"/x.tar.xz", []byte("\xfd7zXZ\x00\x00\x00"))
	store := open(t, images.Options{})
	for give, want := range map[string]string{
		"":                              "docker-archive:PATH",
		"UPPER:case:x":                  "docker-archive:PATH",
		"dir:" + dir + "/none":          "no such file",
		"dir:" + dir + "/text":          "no directory",
		"tar:" + dir + "/d":             "no file",
		"oci:" + dir + "/d":             "oci-layout",
		dir + "/none":                   "dir:PATH",
		dir + "/text":                   "tarball",
		dir + "/x.tar.xz":               "gzip or zstd",
		"docker-archive:" + dir + "/d":  "no file",
		"oci:":                          "names no path",
		"127.0.0.1:1/nobody/listens:1":  "connection refused",
		"a\x00b":                        "NUL",
		"docker-archive:" + dir + "/no": "no such file",
	} {
		if _, err := store.Find(t.Context(), give); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q) = %v, want an error with %q", give, err, want)
		}
	}
	checkEmpty(t, store, true)
	const both = "127.0.0.1:1/both"
	mkdir(t, filepath.Join(dir, both))
	t.Chdir(dir)
	if _, err := store.Find(t.Context(), both); err == nil || !strings.Contains(err.Error(), "./"+both) {
		t.Errorf("Find of a path that does not look like one = %v, want a hint", err)
	}
}

// TestDirectory copies a directory once, whatever becomes of it.
func TestDirectory(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	mkdir(t, root+"/sub")
	write(t, root+"/file", []byte("one"))
	write(t, root+"/sub/.wh.literal", []byte("not a white-out"))
	for _, err := range []error{
		os.Link(root+"/file", root+"/hard"), os.Symlink("/nowhere", root+"/link"), syscall.Mkfifo(root+"/pipe", 0o600),
		syscall.Mknod(root+"/whiteout", syscall.S_IFCHR, 0), os.Chmod(root+"/sub", 0o2750), syscall.Setxattr(root+"/file", "user.kept", []byte("v"), 0),
		syscall.Setxattr(root+"/sub", "user.overlay.opaque", []byte("y"), 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	delete(want, "whiteout")
	store := open(t, images.Options{})
	image := find(t, store, root)
	files := seen(t, store, image)
	if diff := cmp.Diff(forOwner(want), forOwner(files)); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
	copied := filepath.Join(store.Dir(), image.Layers[0])
	a, errA := os.Stat(copied + "/file")
	b, errB := os.Stat(copied + "/hard")
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		t.Errorf("hard links are two files: %v %v", errA, errB)
	}
	value := make([]byte, 10)
	if n, err := syscall.Getxattr(copied+"/file", "user.kept", value); err != nil || string(value[:n]) != "v" {
		t.Errorf("attribute = %q, %v", value[:max(n, 0)], err)
	}
	if _, err := syscall.Getxattr(copied+"/sub", "user.overlay.opaque", value); !errors.Is(err, syscall.ENODATA) {
		t.Errorf("an attribute that means something to an overlay is kept: %v", err)
	}
	var log bytes.Buffer
	again := open(t, images.Options{Dir: store.Dir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if same := find(t, again, "dir:"+root); !cmp.Equal(same, image) || strings.Contains(log.String(), "unpacked") {
		t.Errorf("the same directory is copied again: %s", log.String())
	}
	write(t, root+"/file", []byte("another"))
	if data, err := os.ReadFile(copied + "/file"); err != nil || string(data) != "one" {
		t.Errorf("what was copied changes with the directory: %q, %v", data, err)
	}
	if same := find(t, again, "dir:"+root); same.Digest != image.Digest {
		t.Error("a store changes its mind")
	}
	next := open(t, images.Options{Dir: store.Dir()})
	if changed := find(t, next, root); changed.Digest == image.Digest {
		t.Error("a changed directory is the same image")
	}
	if os.Getuid() != 0 {
		if err := os.Chmod(root+"/file", 0); err != nil {
			t.Fatal(err)
		}
		if _, err := open(t, images.Options{Dir: store.Dir()}).Find(t.Context(), root); !errors.Is(err, os.ErrPermission) {
			t.Errorf("a file that cannot be read: %v, want %v", err, os.ErrPermission)
		}
	}
	// A directory that has the store in it does not copy it into itself.
	inside := open(t, images.Options{Dir: filepath.Join(root, "store")})
	if err := os.Chmod(root+"/file", 0o644); err != nil {
		t.Fatal(err)
	}
	if files := seen(t, inside, find(t, inside, root)); len(files) > 10 {
		t.Errorf("the store is copied into itself: %v", files)
	}
}

// TestProgress adds up.
func TestProgress(t *testing.T) {
	hub := newHub(t)
	reference := hub.push(t, "small:1", small(t))
	var mu sync.Mutex
	last := map[string]images.Progress{}
	store := open(t, images.Options{Progress: func(p images.Progress) {
		mu.Lock()
		defer mu.Unlock()
		last[p.Layer] = p
	}})
	find(t, store, reference)
	for name, p := range last {
		if !p.Ended || p.Done != p.Total || p.Done == 0 || p.Image != reference {
			t.Errorf("layer %s ends with %+v", name, p)
		}
	}
	if len(last) != 3 {
		t.Errorf("%d layers, want 3", len(last))
	}
}

// noise is data that does not compress.
func noise(n int) string {
	data := make([]byte, n)
	state := uint64(1)
	for i := range data {
		state = state*6364136223846793005 + 1442695040888963407
		data[i] = byte(state >> 56)
	}
	return string(data)
}

type built struct {
	image    v1.Image
	platform v1.Platform
}

func platformImage(t *testing.T, file string, foreign bool) built {
	t.Helper()
	p := v1.Platform{OS: "linux", Architecture: map[bool]string{true: "riscv64", false: runtime.GOARCH}[foreign]}
	image := imageOf(t, v1.Config{}, tarball(t, fileEntry(file, "")))
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.OS, p.Architecture
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return built{image, p}
}

func registryOf(t *testing.T, host string) name.Registry {
	t.Helper()
	r, err := name.NewRegistry(host)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestArchives picks one of several images, and refuses documents that are none.
func TestArchives(t *testing.T) {
	dir := t.TempDir()
	several := map[name.Tag]v1.Image{}
	for _, tag := range []string{"one:1.0", "two:latest"} {
		parsed, err := name.NewTag(tag)
		if err != nil {
			t.Fatal(err)
		}
		several[parsed] = imageOf(t, v1.Config{}, tarball(t, fileEntry(tag[:3], "")))
	}
	if err := dockertar.MultiWriteToFile(dir+"/several.tar", several); err != nil {
		t.Fatal(err)
	}
	store := open(t, images.Options{})
	for tag, file := range map[string]string{"one:1.0": "one", "two": "two", "two:latest": "two"} {
		image := find(t, store, "docker-archive:"+dir+"/several.tar:"+tag)
		if _, err := os.Stat(filepath.Join(store.Dir(), image.Layers[0], file)); err != nil {
			t.Errorf("image %s: %v", tag, err)
		}
	}
	layoutFile, index := fileEntry("oci-layout", "{}"), linkEntry("index.json", "/proc/self/environ")
	write(t, dir+"/link.tar", tarball(t, layoutFile, index))
	write(t, dir+"/long.tar.gz", gzipped(t, tarball(t, layoutFile, fileEntry("index.json", strings.Repeat(" ", 17<<20)))))
	write(t, dir+"/long-docker.tar.gz", gzipped(t, tarball(t, fileEntry("manifest.json", strings.Repeat(" ", 200<<20)))))
	write(t, dir+"/loop.tar", tarball(t, linkEntry("manifest.json", "manifest.json")))
	for give, want := range map[string]string{
		"docker-archive:" + dir + "/several.tar":        "one:1.0",
		"docker-archive:" + dir + "/several.tar:three":  "two:latest",
		"docker-archive:" + dir + "/loop.tar":           "cycle",
		"docker-archive:" + dir + "/long-docker.tar.gz": "more than",
		"oci:" + dir + "/link.tar":                      "not a file",
		"oci:" + dir + "/long.tar.gz":                   "not a file",
	} {
		if _, err := store.Find(t.Context(), give); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q) = %v, want an error with %q", give, err, want)
		}
	}
}
