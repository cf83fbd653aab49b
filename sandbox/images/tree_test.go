//go:build linux

package images_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"
)

// tree is what can be seen of files: by path, what each is.
type tree map[string]node

type node struct {
	Mode     uint32 // with the kind of file
	UID, GID uint32
	Content  string // hash of a file, target of a link
	Mtime    int64
}

// without returns a tree with less in each node.
func (t tree) without(strip func(*node)) tree {
	out := tree{}
	for name, n := range t {
		strip(&n)
		out[name] = n
	}
	return out
}

func owners(n *node) { n.UID, n.GID = 0, 0 }
func mtimes(n *node) { n.Mtime = 0 }

func readTree(root string) (tree, error) {
	files := tree{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		n := node{Mode: st.Mode, UID: st.Uid, GID: st.Gid, Mtime: info.ModTime().Unix()}
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			n.Content = contentHash(data)
		case info.Mode()&fs.ModeSymlink != 0:
			if n.Content, err = os.Readlink(name); err != nil {
				return err
			}
		}
		rel, err := filepath.Rel(root, name)
		files[rel] = n
		return err
	})
	return files, err
}

func contentHash(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data))[:16] }

// flattened is an image as somebody else's code puts its layers together.
func flattened(t *testing.T, image v1.Image) tree {
	t.Helper()
	reader := mutate.Extract(image)
	defer reader.Close()
	files := tree{}
	contents := tar.NewReader(reader)
	for {
		header, err := contents.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		name := path.Clean(header.Name)
		n := node{Mode: uint32(header.Mode), UID: uint32(header.Uid), GID: uint32(header.Gid), Mtime: header.ModTime.Unix()}
		switch header.Typeflag {
		case tar.TypeDir:
			n.Mode |= syscall.S_IFDIR
		case tar.TypeReg:
			n.Mode |= syscall.S_IFREG
			data, err := io.ReadAll(contents)
			if err != nil {
				t.Fatal(err)
			}
			n.Content = contentHash(data)
		case tar.TypeSymlink:
			n.Mode = syscall.S_IFLNK | 0o777
			n.Content = header.Linkname
		case tar.TypeLink:
			n = files[path.Clean(header.Linkname)]
		case tar.TypeFifo:
			n.Mode |= syscall.S_IFIFO
		}
		files[name] = n
	}
}

var when = time.Unix(1_600_000_000, 0)

// The entries of tarballs.
func dirEntry(name string, mode int64) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, ModTime: when}}
}

func fileEntry(name, data string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: when}, data: data}
}

func linkEntry(name, target string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777, ModTime: when}}
}

func hardEntry(name, target string) entry {
	return entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: target, Mode: 0o644, ModTime: when}}
}

type entry struct {
	tar.Header
	data string
}

func (e entry) with(change func(*tar.Header)) entry {
	change(&e.Header)
	return e
}

// tarball writes entries, preceded by the root.
func tarball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	return bareTarball(t, append([]entry{dirEntry("./", 0o755)}, entries...)...)
}

func bareTarball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, e := range entries {
		if err := writer.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(writer, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	writer := gzip.NewWriter(&out)
	if _, err := writer.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer encoder.Close()
	return encoder.EncodeAll(data, nil)
}

// packed is a layer as it is sent, which is not what it says of itself unless its tarball is true.
type packed struct {
	v1.Layer // as it is sent
	diffID   v1.Hash
	plain    []byte
}

func (p packed) DiffID() (v1.Hash, error) { return p.diffID, nil }

func (p packed) Uncompressed() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(p.plain)), nil
}

func pack(data, sent []byte, media types.MediaType) v1.Layer {
	sum := sha256.Sum256(data)
	return packed{static.NewLayer(sent, media), v1.Hash{Algorithm: "sha256", Hex: fmt.Sprintf("%x", sum)}, data}
}

// imageOf makes an image of tarballs, the lowest first, sent in turn with gzip, zstd and as they are.
func imageOf(t testing.TB, config v1.Config, tarballs ...[]byte) v1.Image {
	t.Helper()
	var layers []v1.Layer
	for i, data := range tarballs {
		switch i % 3 {
		case 0:
			layers = append(layers, pack(data, gzipped(t, data), types.OCILayer))
		case 1:
			layers = append(layers, pack(data, zstded(t, data), types.OCILayerZStd))
		default:
			layers = append(layers, pack(data, data, types.OCIUncompressedLayer))
		}
	}
	image, err := mutate.AppendLayers(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), layers...)
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.Config(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

func names(entries []os.DirEntry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}
