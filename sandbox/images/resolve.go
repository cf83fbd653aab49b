package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// source is an image as it was found, before it is unpacked.
type source struct {
	digest  string // of the image for this machine
	index   string // of what the reference names, when that is for several kinds of machines
	stamp   string // of the file that it is, see record
	config  v1.Config
	layers  []part // the lowest first
	closers []func() error
}

func (s *source) close() {
	for _, c := range s.closers {
		_ = c() // it was only read
	}
}

// resolve finds out what a reference means at the moment.
func (s *Store) resolve(ctx context.Context, ref reference) (*source, error) {
	switch ref.kind {
	case fromRegistry:
		return s.fromRegistry(ctx, ref)
	case fromOCI:
		return s.fromOCI(ctx, ref)
	case fromDocker:
		return s.fromDocker(ctx, ref)
	case fromDir:
		return s.fromDir(ctx, ref)
	default:
		return s.fromTar(ctx, ref)
	}
}

// platform is what images are run on here.
var platform = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}

// fill takes what an image's configuration says. opens are its layers, the lowest first.
func (s *Store) fill(found *source, config *v1.ConfigFile, tries int, opens []func(context.Context) (io.ReadCloser, int64, error)) error {
	if config.Architecture != "" && config.Architecture != platform.Architecture {
		return fmt.Errorf("it is for %s, and this machine is %s", config.Architecture, platform.Architecture)
	}
	if config.OS != "" && config.OS != platform.OS {
		return fmt.Errorf("it is for %s", config.OS)
	}
	ids := config.RootFS.DiffIDs
	if len(ids) != len(opens) {
		return fmt.Errorf("it has %d layers and names %d: it is not the image of a file system", len(opens), len(ids))
	}
	if len(ids) == 0 {
		return errors.New("it has no layers")
	}
	found.config = config.Config
	for i, id := range ids {
		if id.Algorithm != "sha256" || len(id.Hex) != 64 || strings.Trim(id.Hex, "0123456789abcdef") != "" {
			return fmt.Errorf("layer %q is not named by a SHA-256 digest", id)
		}
		found.layers = append(found.layers, blob{diffID: id.String(), open: opens[i], squash: s.squash, tries: tries}.part())
	}
	return nil
}
