//go:build linux

package images_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"trajgen/sandbox/images"
)

// TestWhiteouts compares what a sandbox sees with what somebody else's code makes of the same layers.
func TestWhiteouts(t *testing.T) {
	base := tarball(t,
		dirEntry("a/", 0o755), fileEntry("a/1", "1"), fileEntry("a/2", "2"), dirEntry("a/sub/", 0o700), fileEntry("a/sub/x", "x"),
		dirEntry("b/", 0o750), fileEntry("b/1", "b1"), linkEntry("link", "a/1"), fileEntry("file", "f"), hardEntry("hard", "b/1"),
	)
	tests := []struct {
		name   string
		layers [][]byte
	}{
		{"file", [][]byte{base, tarball(t, dirEntry("a/", 0o755), fileEntry("a/.wh.1", ""))}},
		{"file at the root", [][]byte{base, tarball(t, fileEntry(".wh.file", ""))}},
		{"directory", [][]byte{base, tarball(t, fileEntry(".wh.a", ""))}},
		{"link", [][]byte{base, tarball(t, fileEntry(".wh.link", ""))}},
		{"one of two hard links", [][]byte{base, tarball(t, fileEntry(".wh.hard", ""))}},
		{"nothing", [][]byte{base, tarball(t, fileEntry(".wh.missing", ""))}},
		{"nothing in nothing", [][]byte{base, tarball(t, dirEntry("n/", 0o755), fileEntry("n/.wh.missing", ""))}},
		{"nothing in an opaque directory", [][]byte{base, tarball(t, dirEntry("a/", 0o755), fileEntry("a/.wh..wh..opq", ""), fileEntry("a/.wh.1", ""), dirEntry("a/sub/", 0o711), fileEntry("a/sub/.wh.x", ""))}},
		{"nothing in the lowest layer", [][]byte{tarball(t, dirEntry("n/", 0o711), fileEntry("n/.wh.missing", ""), fileEntry(".wh.missing", ""))}},
		{"opaque", [][]byte{base, tarball(t, dirEntry("a/", 0o711), fileEntry("a/.wh..wh..opq", ""))}},
		{"opaque with files", [][]byte{base, tarball(t, dirEntry("a/", 0o755), fileEntry("a/.wh..wh..opq", ""), fileEntry("a/new", "n"))}},
		{"opaque after files", [][]byte{base, tarball(t, dirEntry("a/", 0o755), fileEntry("a/new", "n"), fileEntry("a/.wh..wh..opq", ""))}},
		{"opaque below", [][]byte{base, tarball(t, dirEntry("a/", 0o755), dirEntry("a/sub/", 0o755), fileEntry("a/sub/.wh..wh..opq", ""), fileEntry("a/sub/y", "y"))}},
		{"opaque root", [][]byte{base, tarball(t, fileEntry(".wh..wh..opq", ""), fileEntry("only", "o"))}},
		{"directory becomes file", [][]byte{base, tarball(t, fileEntry("a", "now a file"))}},
		{"directory becomes link", [][]byte{base, tarball(t, linkEntry("a", "b"))}},
		{"file becomes directory", [][]byte{base, tarball(t, dirEntry("file/", 0o755), fileEntry("file/in", "i"))}},
		{"link becomes directory", [][]byte{base, tarball(t, dirEntry("link/", 0o755), fileEntry("link/in", "i"))}},
		{"gone and back", [][]byte{base, tarball(t, fileEntry(".wh.a", "")), tarball(t, dirEntry("a/", 0o755), fileEntry("a/3", "3"))}},
		{"file then directory then file", [][]byte{base, tarball(t, dirEntry("file/", 0o755), fileEntry("file/in", "i")), tarball(t, fileEntry("file", "again"))}},
		{"changed mode", [][]byte{base, tarball(t, dirEntry("a/", 0o701), dirEntry("b/", 0o777))}},
		{"the same layer again", [][]byte{base, tarball(t, fileEntry(".wh.a", "")), base}},
		{"the same layer with another between", [][]byte{tarball(t, fileEntry("z", "z")), base, tarball(t, fileEntry("file", "other")), base}},
		{"an empty layer", [][]byte{base, bareTarball(t), tarball(t, fileEntry("z", "z")), bareTarball(t)}},
	}
	hub := newHub(t)
	store := open(t, images.Options{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			image := imageOf(t, v1.Config{}, tt.layers...)
			got := find(t, store, hub.push(t, "whiteouts:"+strings.NewReplacer(" ", "-", ",", "").Replace(tt.name), image))
			want, files := forOwner(flattened(t, image)), forOwner(seen(t, store, got))
			if diff := cmp.Diff(want, files); diff != "" {
				t.Errorf("files (-want +got)\n%s", diff)
			}
		})
	}
}

// TestOwnLayer shows that a white-out hides nothing of its own layer, whatever the order.
func TestOwnLayer(t *testing.T) {
	base := tarball(t, dirEntry("a/", 0o755), fileEntry("a/below", ""), fileEntry("f", "below"))
	hide, dir, file := fileEntry(".wh.a", ""), dirEntry("a/", 0o755), fileEntry("a/here", "")
	tests := map[string][]entry{
		"first":   {hide, dir, file},
		"between": {dir, hide, file},
		"last":    {dir, file, hide},
		"implied": {hide, file},
	}
	hub := newHub(t)
	store := open(t, images.Options{})
	for name, entries := range tests {
		t.Run(name, func(t *testing.T) {
			entries := append(entries, fileEntry(".wh.f", ""), fileEntry("f", "here"))
			files := seen(t, store, find(t, store, hub.push(t, "own:"+name, imageOf(t, v1.Config{}, base, tarball(t, entries...)))))
			if _, ok := files["a/here"]; !ok {
				t.Error("a/here is hidden by its own layer")
			}
			if _, ok := files["a/below"]; ok {
				t.Error("a/below is not hidden")
			}
			if got := files["f"].Content; got != contentHash([]byte("here")) {
				t.Error("f is not the upper layer's")
			}
		})
	}
}

// TestImpliedDirectories shows that a layer that only puts a file somewhere leaves the directory as it was below.
func TestImpliedDirectories(t *testing.T) {
	base := tarball(t, dirEntry("tmp/", 0o1777), dirEntry("etc/", 0o750), dirEntry("etc/deep/", 0o700), dirEntry("gone/", 0o711), dirEntry("opaque/", 0o711))
	upper := bareTarball(t, fileEntry("tmp/file", ""), fileEntry("etc/deep/file", ""), fileEntry(".wh.gone", ""), fileEntry("opaque/.wh..wh..opq", ""), fileEntry("new/file", ""))
	hub := newHub(t)
	store := open(t, images.Options{})
	image := find(t, store, hub.push(t, "implied:1", imageOf(t, v1.Config{}, base, upper)))
	files := seen(t, store, image)
	for name, want := range map[string]uint32{"tmp": 0o1777, "etc": 0o750, "etc/deep": 0o700, "opaque": 0o755, "new": 0o755, ".": 0o755} {
		if got := files[name].Mode & 0o7777; got != want {
			t.Errorf("mode of %s = %#o, want %#o", name, got, want)
		}
	}
	for _, name := range []string{"tmp/file", "etc/deep/file", "new/file"} {
		if _, ok := files[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if _, ok := files["gone"]; ok {
		t.Error("gone is there")
	}
	if again := find(t, open(t, images.Options{Dir: store.Dir()}), hub.host+"/implied:1"); !cmp.Equal(image, again) {
		t.Errorf("found again: %+v, want %+v", again, image)
	}
}

// TestAttributes shows what files keep.
func TestAttributes(t *testing.T) {
	capability := string([]byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) // cap_net_bind_service+e
	long := strings.Repeat("directory/", 30) + strings.Repeat("n", 200)
	data := tarball(t,
		dirEntry("closed/", 0o000).with(func(h *tar.Header) { h.Uid, h.Gid = 12, 34 }),
		fileEntry("closed/file", "x").with(func(h *tar.Header) { h.Mode = 0; h.Uid, h.Gid = 1_000_000, 7 }),
		fileEntry("suid", "").with(func(h *tar.Header) { h.Mode = 0o6755 }),
		fileEntry("caps", "").with(func(h *tar.Header) {
			h.Uid = 5
			h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": capability, "SCHILY.xattr.user.kept": "v\x00w",
				"SCHILY.xattr.user.overlay.redirect": "/etc", "SCHILY.xattr.trusted.overlay.opaque": "y"}
		}),
		dirEntry("dir/", 0o2775).with(func(h *tar.Header) {
			h.PAXRecords = map[string]string{"SCHILY.xattr.user.dir": "d", "SCHILY.xattr.user.overlay.opaque": "y"}
		}),
		fileEntry(long, "deep"),
		linkEntry("to", strings.Repeat("t/", 500)),
		linkEntry("absolute", "/etc/passwd"),
		fileEntry("early", "").with(func(h *tar.Header) { h.ModTime = time.Unix(-5, 500).UTC(); h.Format = tar.FormatPAX }),
		entry{Header: tar.Header{Typeflag: tar.TypeFifo, Name: "pipe", Mode: 0o620, ModTime: when}},
		entry{Header: tar.Header{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3, Mode: 0o666, ModTime: when}},
		entry{Header: tar.Header{Typeflag: tar.TypeChar, Name: "whiteout", Mode: 0o666, ModTime: when}},
		entry{Header: tar.Header{Typeflag: tar.TypeBlock, Name: "disk", Devmajor: 8, Mode: 0o666, ModTime: when}},
	)
	path := filepath.Join(t.TempDir(), "root.tar")
	write(t, path, data)
	store := open(t, images.Options{})
	dir := filepath.Join(store.Dir(), find(t, store, path).Layers[0])
	root := os.Getuid() == 0
	stat := func(name string) (st unix.Stat_t) {
		t.Helper()
		if err := unix.Lstat(filepath.Join(dir, name), &st); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return st
	}
	modes := map[string]uint32{"closed": 0, "closed/file": 0, "suid": 0o6755, "dir": 0o2775, "pipe": 0o620}
	if !root {
		modes["closed"], modes["closed/file"] = 0o700, 0o400
	}
	for name, want := range modes {
		if got := stat(name).Mode & 0o7777; got != want {
			t.Errorf("mode of %s = %#o, want %#o", name, got, want)
		}
	}
	if st := stat("closed/file"); root && (st.Uid != 1_000_000 || st.Gid != 7) || !root && st.Uid != uint32(os.Getuid()) {
		t.Errorf("owner of closed/file = %d:%d", st.Uid, st.Gid)
	}
	if st := stat("early"); st.Mtim.Sec != -5 || st.Mtim.Nsec != 500 {
		t.Errorf("time of early = %v", st.Mtim)
	}
	if st := stat("closed"); st.Mtim.Sec != when.Unix() {
		t.Errorf("time of closed = %v, want %v", st.Mtim, when)
	}
	if st := stat(long); st.Size != 4 {
		t.Errorf("long name: %d bytes, want 4", st.Size)
	}
	for _, name := range []string{"null", "whiteout", "disk"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("device %s: %v, want none", name, err)
		}
	}
	attributes := map[[2]string]string{
		{"caps", "user.kept"}: "v\x00w", {"caps", "security.capability"}: capability, {"dir", "user.dir"}: "d",
		{"caps", "user.overlay.redirect"}: "", {"caps", "trusted.overlay.opaque"}: "", {"dir", "user.overlay.opaque"}: "",
	}
	if !root {
		attributes[[2]string{"caps", "security.capability"}] = ""
	}
	for key, want := range attributes {
		value := make([]byte, 100)
		n, err := unix.Getxattr(filepath.Join(dir, key[0]), key[1], value)
		if got := string(value[:max(n, 0)]); got != want || (want == "") != errors.Is(err, unix.ENODATA) {
			t.Errorf("attribute %s of %s = %q, %v; want %q", key[1], key[0], got, err, want)
		}
	}
	for _, closed := range []string{store.Dir(), filepath.Join(store.Dir(), "layers")} {
		if info, err := os.Stat(closed); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v %v, want it closed to others", closed, info.Mode(), err)
		}
	}
}

// TestSparse unpacks a file that is mostly holes, as GNU tar and a plain tarball have it.
func TestSparse(t *testing.T) {
	dir := t.TempDir()
	mkdir(t, dir+"/root")
	file, err := os.Create(dir + "/root/sparse")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 5 << 20, 12<<20 - 3} {
		if _, err := file.WriteAt([]byte("abc"), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(file.Truncate(16<<20), file.Close()); err != nil {
		t.Fatal(err)
	}
	shell(t, "tar", "-C", dir+"/root", "-cf", dir+"/plain.tar", ".")
	shell(t, "tar", "-C", dir+"/root", "--sparse", "--format=gnu", "-cf", dir+"/gnu.tar", ".")
	shell(t, "tar", "-C", dir+"/root", "--sparse", "--format=posix", "-cf", dir+"/posix.tar", ".")
	for _, reference := range []string{dir + "/root", dir + "/plain.tar", dir + "/gnu.tar", dir + "/posix.tar"} {
		store := open(t, images.Options{})
		path := filepath.Join(store.Dir(), find(t, store, reference).Layers[0], "sparse")
		shell(t, "cmp", path, dir+"/root/sparse")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if disk := info.Sys().(*syscall.Stat_t).Blocks * 512; disk > 1<<20 {
			t.Errorf("%s takes %d bytes on disk, want holes", reference, disk)
		}
		if _, err := open(t, images.Options{MaxBytes: 1 << 20}).Find(t.Context(), reference); err == nil && !strings.HasSuffix(reference, "root") {
			t.Errorf("%s: a file of 16 MiB fits in 1 MiB", reference)
		}
	}
}

// TestHostileTarballs shows that nothing leads out of a layer, and what is refused.
func TestHostileTarballs(t *testing.T) {
	outside := t.TempDir()
	write(t, outside+"/victim", []byte("unharmed"))
	up := strings.Repeat("../", 40)
	loop := []entry{linkEntry("l1", "l2"), linkEntry("l2", "l1"), fileEntry("l1/x", "")}
	tests := []struct {
		name    string
		entries []entry
		want    string   // of the error; "" is none
		has     []string // paths in the layer
	}{
		{"dots", []entry{fileEntry(up+outside+"/new", "")}, "leads out", nil},
		{"dots inside", []entry{dirEntry("a/", 0o755), fileEntry("a/../../../x", "")}, "leads out", nil},
		{"absolute", []entry{fileEntry(outside+"/new", "x")}, "", []string{outside + "/new"}},
		{"below an absolute link", []entry{linkEntry("l", outside), fileEntry("l/new", "x")}, "", []string{outside + "/new"}},
		{"below a link with dots", []entry{linkEntry("l", up+outside), fileEntry("l/new", "x")}, "", []string{outside + "/new"}},
		{"below a link to the root", []entry{linkEntry("l", "/.."), fileEntry("l/new", "x")}, "", []string{"new"}},
		{"below a link to a link", []entry{linkEntry("d/l", "../m/n"), linkEntry("m", "/o"), fileEntry("d/l/new", "x")}, "", []string{"o/n/new"}},
		{"through a link that changes", []entry{dirEntry("a/", 0o755), linkEntry("l", "a"), fileEntry("l/1", ""), linkEntry("l", outside), fileEntry("l/2", "")}, "", []string{"a/1", outside + "/2"}},
		{"over a link", []entry{linkEntry("f", outside+"/victim"), fileEntry("f", "harm")}, "", []string{"f"}},
		{"a directory over a link", []entry{linkEntry("d", outside), dirEntry("d/", 0o777), fileEntry("d/new", "")}, "", []string{"d/new"}},
		{"hard link out", []entry{hardEntry("h", up+outside+"/victim")}, "leads out", nil},
		{"hard link through a link", []entry{linkEntry("l", outside), hardEntry("h", "l/victim"), fileEntry("h", "harm")}, "does not have", nil},
		{"hard link to a link, then written", []entry{linkEntry("l", outside+"/victim"), hardEntry("h", "l"), fileEntry("h", "harm")}, "", []string{"h", "l"}},
		{"hard link to itself", []entry{fileEntry("f", "x"), hardEntry("f", "f")}, "", []string{"f"}},
		{"hard link to a directory", []entry{dirEntry("d/", 0o755), hardEntry("h", "d")}, "link to the directory", nil},
		{"hard link to a white-out", []entry{fileEntry(".wh.w", ""), hardEntry("h", "w")}, "does not have", nil},
		{"hard link to nothing", []entry{hardEntry("h", "nothing")}, "does not have", nil},
		{"white-out of dots", []entry{fileEntry("a/.wh...", "")}, "hides no name", nil},
		{"white-out of a dot", []entry{fileEntry("a/.wh..", "")}, "hides no name", nil},
		{"white-out of nothing", []entry{fileEntry(".wh.", "")}, "hides no name", nil},
		{"white-out through a link", []entry{linkEntry("l", outside), fileEntry("l/.wh.victim", "")}, "", []string{outside + "/victim"}},
		{"opaque through a link", []entry{linkEntry("l", outside), fileEntry("l/.wh..wh..opq", "")}, "", []string{outside}},
		{"old white-outs", []entry{dirEntry(".wh..wh.plnk/", 0o700), fileEntry(".wh..wh.aufs", "")}, "", nil},
		{"file as directory", []entry{fileEntry("f", ""), fileEntry("f/x", "")}, "not a directory", nil},
		{"directory becomes file", []entry{fileEntry("d/x", ""), fileEntry("d", ""), hardEntry("e", "d")}, "", []string{"d", "e"}},
		{"directory becomes file becomes directory", []entry{dirEntry("d/", 0o700), fileEntry("d/x", ""), fileEntry("d", ""), dirEntry("d/", 0o755), fileEntry("d/y", "")}, "", []string{"d/y"}},
		{"link loop", loop, "levels of symbolic links", nil},
		{"link to itself", []entry{linkEntry("l", "l"), fileEntry("l/x", "")}, "levels of symbolic links", nil},
		{"link to nothing", []entry{linkEntry("l", "").with(func(h *tar.Header) { h.Linkname = "" })}, "link to nothing", nil},
		{"root as file", []entry{fileEntry(".", "")}, "root is not a directory", nil},
		{"root as link", []entry{linkEntry(".", outside)}, "root is not a directory", nil},
		{"owner that means none", []entry{fileEntry("f", "").with(func(h *tar.Header) { h.Uid = math.MaxUint32; h.Format = tar.FormatGNU })}, "owner", nil},
		{"negative owner", []entry{fileEntry("f", "").with(func(h *tar.Header) { h.Uid = -1; h.Format = tar.FormatGNU })}, "owner", nil},
		{"name too long", []entry{fileEntry(strings.Repeat("n", 300), "")}, "name too long", nil},
		{"path too long", []entry{fileEntry(strings.Repeat("d/", 3000)+"f", "")}, "name too long", nil},
		{"unknown type", []entry{fileEntry("f", "").with(func(h *tar.Header) { h.Typeflag = 'Z' })}, "unknown type", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "layer.tar")
			write(t, path, tarball(t, tt.entries...))
			store := open(t, images.Options{})
			image, err := store.Find(t.Context(), "tar:"+path)
			if tt.want == "owner" && os.Getuid() != 0 {
				tt.want = "" // nobody looks at it
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("Find = %v, want an error with %q", err, tt.want)
			}
			for _, name := range tt.has {
				if _, err := os.Lstat(filepath.Join(store.Dir(), image.Layers[len(image.Layers)-1], name)); err != nil {
					t.Errorf("in the layer: %v", err)
				}
			}
			left, err := os.ReadDir(outside)
			if got, errRead := os.ReadFile(outside + "/victim"); err != nil || errRead != nil || string(got) != "unharmed" || len(left) != 1 {
				t.Errorf("outside of the layer: %s, victim %q, %v %v", names(left), got, err, errRead)
			}
			checkEmpty(t, store, tt.want != "")
		})
	}
}

// checkEmpty looks for what should not be there after an image failed.
func checkEmpty(t *testing.T, store *images.Store, layers bool) {
	t.Helper()
	dirs := []string{"tmp", "locks"}
	if layers {
		dirs = append(dirs, "layers", "images")
	}
	for _, dir := range dirs {
		left, err := os.ReadDir(filepath.Join(store.Dir(), dir))
		if err != nil || len(left) > 0 {
			t.Errorf("left in %s: %s %v", dir, names(left), err)
		}
	}
}

// TestBombs shows that what unpacks to too much is refused.
func TestBombs(t *testing.T) {
	zeros := strings.Repeat("\x00", 8<<20)
	var many []entry
	for i := range 2000 {
		many = append(many, dirEntry(strings.Repeat("d/", 1+i%50)+string(rune('a'+i%26)), 0o755))
	}
	trailing := append(tarball(t, fileEntry("f", "")), zeros...)
	tests := map[string]struct {
		layers [][]byte
		opts   images.Options
	}{
		"one layer":      {[][]byte{tarball(t, fileEntry("zeros", zeros))}, images.Options{MaxBytes: 4 << 20}},
		"many layers":    {[][]byte{tarball(t, fileEntry("a", zeros)), tarball(t, fileEntry("b", zeros)), tarball(t, fileEntry("c", zeros))}, images.Options{MaxBytes: 20 << 20}},
		"many files":     {[][]byte{tarball(t, many...)}, images.Options{MaxEntries: 1000}},
		"after the end":  {[][]byte{trailing}, images.Options{MaxBytes: 4 << 20}},
		"gzip in a gzip": {[][]byte{gzipped(t, []byte(zeros))}, images.Options{MaxBytes: 1 << 10}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			hub := newHub(t)
			reference := hub.push(t, "bomb:1", imageOf(t, v1.Config{}, tt.layers...))
			store := open(t, tt.opts)
			if image, err := store.Find(t.Context(), reference); err == nil {
				t.Errorf("Find = %+v, want an error", image)
			}
			checkEmpty(t, store, name != "many layers")
		})
	}
}

// FuzzUnpack unpacks whatever comes, as this user and as an ordinary one: nothing may be changed outside, and no device
// may be made.
func FuzzUnpack(f *testing.F) {
	f.Add(tarball(f, dirEntry("a/", 0o755), fileEntry("a/b", "x"), linkEntry("l", "/../a"), hardEntry("h", "a/b"), fileEntry("l/c", "")))
	f.Add(tarball(f, fileEntry(".wh.x", ""), fileEntry("x/.wh..wh..opq", ""), linkEntry("m", ".."), fileEntry("m/../../z", "")))
	f.Add(tarball(f, dirEntry("d/", 0), linkEntry("d", "e"), dirEntry("d/", 0o7777), fileEntry("d/f", "1"), hardEntry("g", "d/f"), fileEntry("g", "2")))
	f.Add(tarball(f, fileEntry("long/"+strings.Repeat("n", 150)+"/"+strings.Repeat("o", 150), "x").with(func(h *tar.Header) {
		h.PAXRecords = map[string]string{"SCHILY.xattr.user.a": "b", "SCHILY.xattr.security.capability": "c"}
	})))
	f.Fuzz(func(t *testing.T, data []byte) {
		data = signed(data)
		for _, squash := range []bool{false, true} {
			if !squash && os.Getuid() != 0 {
				continue
			}
			outer := t.TempDir()
			mkdir(t, outer+"/layer")
			write(t, outer+"/victim", []byte("unharmed"))
			err := images.Unpack(strings.NewReader(string(data)), outer+"/layer", squash, 16<<20, 1000)
			left, errLeft := os.ReadDir(outer)
			victim, errVictim := os.ReadFile(outer + "/victim")
			if errLeft != nil || errVictim != nil || names(left) != "layer victim" || string(victim) != "unharmed" {
				t.Errorf("outside: %s, %q, %v %v (unpack: %v)", names(left), victim, errLeft, errVictim, err)
			}
			errWalk := filepath.WalkDir(outer+"/layer", func(path string, entry fs.DirEntry, err error) error {
				if err == nil && entry.Type()&fs.ModeDevice != 0 {
					var st unix.Stat_t
					if err := unix.Lstat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
						t.Errorf("device %s: %v %d:%d", path, err, unix.Major(st.Rdev), unix.Minor(st.Rdev))
					}
				}
				return err
			})
			if errWalk != nil {
				t.Error(errWalk)
			}
		}
	})
}

// signed gives tarballs the checksums without which nobody reads on.
func signed(data []byte) []byte {
	data = bytes.Clone(data)
	for at := 0; at+512 <= len(data); {
		header := data[at : at+512]
		sum := 0
		for i, c := range header {
			if i >= 148 && i < 156 {
				c = ' '
			}
			sum += int(c)
		}
		if sum == 8*' ' {
			break // the end
		}
		copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
		size, err := strconv.ParseInt(strings.Trim(string(header[124:136]), " \x00"), 8, 63)
		if err != nil || size > int64(len(data)) {
			size = 0
		}
		at += 512 + int(size+511)/512*512
	}
	return data
}
