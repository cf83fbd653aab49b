package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// fetchTries is how often a layer is asked for before a broken connection is an error.
const fetchTries = 3

func remoteOptions(ctx context.Context) []remote.Option {
	return []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithPlatform(platform),
		remote.WithUserAgent("trajgen"),
	}
}

// tagDigest asks what a tag names at the moment, "" when the registry does not say so without sending it.
func tagDigest(ctx context.Context, ref name.Reference) (string, error) {
	head, err := remote.Head(ref, remoteOptions(ctx)...)
	if err == nil {
		return head.Digest.String(), nil
	}
	if unreachable(err) {
		return "", err
	}
	// Some registries answer only to those who want it all; what is wrong is better said then, too.
	return "", nil
}

// unreachable says whether a registry could not be asked, so that nothing is known of what it has.
func unreachable(err error) bool {
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		return answer.StatusCode >= 500 || answer.StatusCode == 429
	}
	_, ok := errors.AsType[net.Error](err)
	return ok
}

func (s *Store) fromRegistry(ctx context.Context, ref reference) (*source, error) {
	named, err := remote.Get(ref.remote, remoteOptions(ctx)...)
	if err != nil {
		return nil, fmt.Errorf("ask the registry: %w", err)
	}
	image, err := named.Image()
	if err != nil {
		return nil, fmt.Errorf("ask the registry for the image of %s: %w", platform, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	found := &source{digest: digest.String()}
	if named.Digest != digest {
		found.index = named.Digest.String()
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("ask the registry for the configuration: %w", err)
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	var opens []func(context.Context) (io.ReadCloser, int64, error)
	for _, l := range layers {
		opens = append(opens, func(ctx context.Context) (io.ReadCloser, int64, error) { return fetch(ctx, ref.remote, l) })
	}
	return found, s.fill(found, config, fetchTries, opens)
}

// fetch opens a layer as it is in the registry.
func fetch(ctx context.Context, ref name.Reference, l v1.Layer) (io.ReadCloser, int64, error) {
	size, err := l.Size()
	if err != nil {
		return nil, 0, err
	}
	stream, err := l.Compressed()
	return stream, size, err
}
