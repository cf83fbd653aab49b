package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// source is a resolved image, before it is unpacked.
type source struct {
	digest string // of the image for this machine
	index  string // digest of what the reference names, see named
	config v1.Config
	layers []part // the lowest first
}

// platform is that of images for this machine.
var platform = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}

// reader reads images where they come from.
type reader struct {
	store                string // directory of the store, which an image does not contain
	squash               bool   // all files belong to this user
	maxBytes, maxEntries int64
}

// resolve finds out what a reference means at the moment. Its files in scratch must stay until all layers are made.
func (r *reader) resolve(ctx context.Context, ref reference, scratch string) (*source, error) {
	switch ref.kind {
	case fromDir:
		return r.fromDir(ctx, ref)
	case fromTar:
		return r.fromTar(ctx, ref)
	case fromOCI:
		image, index, err := r.fromOCI(ctx, ref, scratch)
		if err != nil {
			return nil, err
		}
		return r.layersOf(image, index, 1)
	case fromDocker:
		image, err := r.fromDocker(ctx, ref, scratch)
		if err != nil {
			return nil, err
		}
		return r.layersOf(image, "", 1)
	default:
		named, err := remote.Get(ref.remote, remoteOptions(ctx)...)
		if err != nil {
			return nil, fmt.Errorf("ask the registry: %w", err)
		}
		image, err := named.Image()
		if err != nil {
			return nil, fmt.Errorf("ask the registry for the image of %s: %w", platform, err)
		}
		return r.layersOf(image, named.Digest.String(), fetchTries)
	}
}

// fetchTries is how often a layer is requested before a broken connection is an error.
const fetchTries = 3

// layersOf reads the configuration and the layers of an image.
func (r *reader) layersOf(image v1.Image, index string, tries int) (*source, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read its configuration: %w", err)
	}
	if config.Architecture != "" && config.Architecture != platform.Architecture {
		return nil, fmt.Errorf("it is for %s, and this machine is %s", config.Architecture, platform.Architecture)
	}
	if config.OS != "" && config.OS != platform.OS {
		return nil, fmt.Errorf("it is for %s", config.OS)
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, fmt.Errorf("read its list of layers: %w", err)
	}
	ids := config.RootFS.DiffIDs
	if len(ids) != len(layers) {
		return nil, fmt.Errorf("it has %d layers and names %d: it is not the image of a file system", len(layers), len(ids))
	}
	if len(ids) == 0 {
		return nil, errors.New("it has no layers")
	}
	name := image.Digest
	_, saved := image.(savedImage)
	if saved {
		name = image.ConfigName // the name that docker uses
	}
	digest, err := name()
	if err != nil {
		return nil, err
	}
	found := &source{digest: digest.String(), config: config.Config}
	if index != found.digest {
		found.index = index
	}
	for i, id := range ids {
		if id.Algorithm != "sha256" {
			return nil, fmt.Errorf("layer %q is not named by a SHA-256 digest", id)
		}
		open := func() (io.ReadCloser, int64, error) {
			if saved {
				stream, err := layers[i].Uncompressed()
				return stream, 0, err
			}
			size, err := layers[i].Size()
			if err != nil {
				return nil, 0, err
			}
			stream, err := layers[i].Compressed()
			return stream, size, err
		}
		found.layers = append(found.layers, blob{diffID: id.String(), open: open, squash: r.squash, tries: tries}.part())
	}
	return found, nil
}

func remoteOptions(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithPlatform(platform),
		remote.WithUserAgent("trajgen"),
	}
}

// unreachable reports whether a registry could not be asked.
func unreachable(err error) bool {
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return answer.StatusCode >= 500 || answer.StatusCode == 429
	}
	_, ok := errors.AsType[net.Error](err)
	return ok
}

// fromTar takes a tarball as an image of one layer. It reads it twice, because the name is a hash of the content.
func (r *reader) fromTar(ctx context.Context, ref reference) (*source, error) {
	stamp, size, err := stampOf(ref.path)
	if err != nil {
		return nil, err
	}
	stream, err := openTar(ref.path)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	diffID, _, err := v1.SHA256(&reading{ctx: ctx, from: stream, took: atMost(r.maxBytes)})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ref.path, err)
	}
	open := func() (io.ReadCloser, int64, error) {
		file, err := os.Open(ref.path)
		return file, size, err
	}
	b := blob{diffID: diffID.String(), open: open, squash: r.squash, tries: 1}
	return &source{digest: b.diffID, index: stamp, layers: []part{b.part()}}, nil
}

// stampOf returns a text that changes when the file does, as far as its metadata shows.
func stampOf(path string) (stamp string, size int64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", 0, err
	}
	inode := uint64(0)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = st.Ino
	}
	return fmt.Sprintf("%s %d %d %d", path, info.Size(), info.ModTime().UnixNano(), inode), info.Size(), nil
}
