package images

import (
	"archive/tar"
	"bufio"
	"compress/bzip2"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxDocument bounds manifests and configurations in bytes: they are held in memory.
const maxDocument = 16 << 20

// savedImage is an image of docker save, which has neither a digest nor compressed layers of its own.
type savedImage struct{ v1.Image }

// fromDocker finds an image in a file of docker save.
func (r *reader) fromDocker(ctx context.Context, ref reference, scratch string) (v1.Image, error) {
	path, err := r.plainTar(ctx, ref.path, scratch)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref.path, err)
	}
	// Beside the documents, the reader takes the headers of the tarball.
	most := int64(2*maxDocument + 64<<20)
	open := func() (io.ReadCloser, error) {
		file, err := os.Open(path)
		return struct {
			io.Reader
			io.Seeker
			io.Closer
		}{&reading{ctx: ctx, from: file, took: atMost(most)}, file, file}, err
	}
	manifest, err := tarball.LoadManifest(open)
	if err != nil {
		return nil, fmt.Errorf("read its manifest.json: %w; %s", err, forms)
	}
	var tags []string
	for _, image := range manifest {
		tags = append(tags, image.RepoTags...)
	}
	var tag *name.Tag
	switch {
	case ref.tag != "":
		named, err := name.NewTag(ref.tag)
		if err != nil {
			return nil, err
		}
		tag = &named
	case len(manifest) > 1:
		return nil, fmt.Errorf("it has several images: name one with :TAG (have %s)", strings.Join(tags, ", "))
	}
	image, err := tarball.Image(open, tag)
	if err != nil {
		return nil, fmt.Errorf("%w (have %s)", err, strings.Join(tags, ", "))
	}
	most = math.MaxInt64
	return savedImage{image}, nil
}

// plainTar returns the path of an uncompressed copy of a tarball, because it is read in any order.
func (r *reader) plainTar(ctx context.Context, path, scratch string) (string, error) {
	stream, err := openTar(path)
	if err != nil {
		return "", err
	}
	defer stream.Close()
	if _, plain := stream.(*os.File); plain {
		return path, nil
	}
	file, err := os.Create(filepath.Join(scratch, "archive.tar"))
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, &reading{ctx: ctx, from: stream, took: atMost(r.maxBytes)})
	return file.Name(), errors.Join(err, file.Close())
}

// fromOCI finds an image in an OCI layout, and the digest of the index that named it, if any.
func (r *reader) fromOCI(ctx context.Context, ref reference, scratch string) (v1.Image, string, error) {
	dir := ref.path
	if info, err := os.Stat(dir); err != nil {
		return nil, "", err
	} else if !info.IsDir() {
		if err := r.extract(ctx, ref.path, scratch); err != nil {
			return nil, "", fmt.Errorf("unpack %s: %w", ref.path, err)
		}
		dir = scratch
	}
	if !exists(filepath.Join(dir, "oci-layout")) {
		return nil, "", fmt.Errorf("%s is not an OCI layout: it has no file oci-layout; %s", ref.path, forms)
	}
	if err := document(filepath.Join(dir, "index.json")); err != nil {
		return nil, "", err
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, "", err
	}
	top := ""
	for range 4 {
		chosen, err := choose(index, ref)
		if err != nil {
			return nil, "", err
		}
		blob := filepath.Join(dir, "blobs", chosen.Digest.Algorithm, chosen.Digest.Hex)
		if err := document(blob); err != nil {
			return nil, "", err
		}
		if !chosen.MediaType.IsIndex() {
			image, err := index.Image(chosen.Digest)
			if err == nil {
				err = genuine(dir, chosen.Digest, image)
			}
			return image, top, err
		}
		if index, err = index.ImageIndex(chosen.Digest); err != nil {
			return nil, "", err
		}
		if err := hasDigest(blob, chosen.Digest, index.Digest); err != nil {
			return nil, "", err
		}
		if top == "" {
			top = chosen.Digest.String()
		}
		ref = reference{} // the tag and digest have been used
	}
	return nil, "", errors.New("its indexes name each other")
}

// extract unpacks an OCI layout that is a tarball.
func (r *reader) extract(ctx context.Context, path, dir string) error {
	stream, err := openTar(path)
	if err != nil {
		return err
	}
	defer stream.Close()
	allowed := &allowance{budget: newBudget(r.maxBytes, r.maxEntries)}
	_, err = unpack(&reading{ctx: ctx, from: stream, took: allowed.read}, dir, true, allowed)
	return err
}

// document refuses what cannot be a manifest or a configuration.
func document(path string) error {
	info, err := os.Lstat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxDocument) {
		err = fmt.Errorf("%s is not a file of at most %d bytes", path, maxDocument)
	}
	return err
}

// genuine verifies the documents of an image in a layout. Its layers are verified when they are unpacked.
func genuine(dir string, digest v1.Hash, image v1.Image) error {
	if err := hasDigest("its manifest", digest, image.Digest); err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	config := manifest.Config.Digest
	if err := document(filepath.Join(dir, "blobs", config.Algorithm, config.Hex)); err != nil {
		return err
	}
	return hasDigest("its configuration", config, image.ConfigName)
}

func hasDigest(what string, want v1.Hash, digest func() (v1.Hash, error)) error {
	have, err := digest()
	if err == nil && have != want {
		err = fmt.Errorf("%s is damaged or forged: its digest is %s, and it should be %s", what, have, want)
	}
	return err
}

// choose picks the manifest of an index that a reference means and this machine can run: in nested indexes, which have no tag
// to match, any that it can run.
func choose(index v1.ImageIndex, ref reference) (v1.Descriptor, error) {
	all, err := index.IndexManifest()
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("read its index: %w", err)
	}
	var fit []v1.Descriptor
	var tags []string
	for _, m := range all.Manifests {
		names := []string{m.Annotations["org.opencontainers.image.ref.name"], m.Annotations["io.containerd.image.name"]}
		tags = append(tags, names...)
		switch {
		case ref.digest != "" && m.Digest.String() != ref.digest:
		case ref.tag != "" && !slices.Contains(names, ref.tag):
		case m.Platform != nil && m.Platform.OS != "" && !m.Platform.Satisfies(platform):
		case !m.MediaType.IsIndex() && !m.MediaType.IsImage():
		case slices.ContainsFunc(fit, func(f v1.Descriptor) bool { return f.Digest == m.Digest }): // under another name
		default:
			fit = append(fit, m)
		}
	}
	slices.Sort(tags)
	have := strings.Trim(strings.Join(slices.Compact(tags), ", "), ", ")
	switch {
	case len(fit) == 0:
		return v1.Descriptor{}, fmt.Errorf("it has no such image for %s (has %d, tagged %s)", platform, len(all.Manifests), have)
	case len(fit) > 1 && ref.kind != "":
		return v1.Descriptor{}, fmt.Errorf("it has %d images: name one with :TAG (have %s) or @sha256:DIGEST", len(fit), have)
	}
	return fit[0], nil
}

// openTar opens a tarball that may be compressed. It is a file if it is not.
func openTar(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	_, compressed := tar.NewReader(file).Next()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if compressed == nil {
		return file, nil
	}
	stream, err := Decompress(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{stream, file}, nil
}

// maxWindow bounds the memory that a compressed stream can ask for.
const maxWindow = 128 << 20

// Decompress reads a stream that may be compressed with gzip, bzip2 or zstd.
func Decompress(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 64<<10)
	magic, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var number uint32
	if len(magic) == 4 {
		number = binary.LittleEndian.Uint32(magic)
	}
	switch {
	case number&0xffff == 0x8b1f:
		return gzip.NewReader(buffered)
	case number&0xffffff == 0x685a42: // BZh
		return bzip2.NewReader(buffered), nil
	case number == 0xfd2fb528, number&^0xf == 0x184d2a50: // a frame, or a skippable one
		// A decoder without goroutines need not be closed.
		return zstd.NewReader(buffered, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(1))
	}
	return buffered, nil
}
