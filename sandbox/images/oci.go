package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// blobName is where an OCI layout has what has a digest.
func blobName(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// fromOCI finds an image in an OCI layout.
func (s *Store) fromOCI(ctx context.Context, ref reference) (_ *source, err error) {
	from, err := s.openFiles(ctx, ref.path)
	if err != nil {
		return nil, err
	}
	found := &source{closers: []func() error{from.close}}
	defer func() {
		if err != nil {
			found.close()
		}
	}()
	if !from.has("oci-layout") {
		return nil, fmt.Errorf("%s is no OCI layout: it has no file oci-layout; %s", ref.path, forms)
	}
	top, err := document(from, "index.json", "")
	if err != nil {
		return nil, err
	}
	chosen, err := choose(top, ref)
	if err != nil {
		return nil, err
	}
	for depth := 0; chosen.MediaType.IsIndex(); depth++ {
		if depth == 4 {
			return nil, errors.New("its indexes name each other")
		}
		if found.index == "" {
			found.index = chosen.Digest.String()
		}
		data, err := document(from, blobName(chosen.Digest), chosen.Digest.String())
		if err != nil {
			return nil, err
		}
		if chosen, err = choose(data, reference{}); err != nil {
			return nil, err
		}
	}
	found.digest = chosen.Digest.String()
	data, err := document(from, blobName(chosen.Digest), found.digest)
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read its manifest: %w", err)
	}
	if data, err = document(from, blobName(manifest.Config.Digest), manifest.Config.Digest.String()); err != nil {
		return nil, err
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read its configuration: %w", err)
	}
	var opens []func(context.Context) (io.ReadCloser, int64, error)
	for _, l := range manifest.Layers {
		opens = append(opens, opener(from, blobName(l.Digest)))
	}
	return found, s.fill(found, config, 1, opens)
}

// choose picks the manifest of an index that a reference means and this machine can run: below the first index, where
// nothing is left to mean, any that it can run.
func choose(data []byte, ref reference) (v1.Descriptor, error) {
	index, err := v1.ParseIndexManifest(bytes.NewReader(data))
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("read its index: %w", err)
	}
	var fit []v1.Descriptor
	var tags []string
	for _, m := range index.Manifests {
		names := []string{m.Annotations["org.opencontainers.image.ref.name"], m.Annotations["io.containerd.image.name"]}
		for _, n := range names {
			if n != "" {
				tags = append(tags, n)
			}
		}
		switch {
		case ref.digest != "" && m.Digest.String() != ref.digest:
		case ref.tag != "" && !slices.Contains(names, ref.tag):
		case m.Platform != nil && m.Platform.OS != "" && !m.Platform.Satisfies(platform):
		case !m.MediaType.IsIndex() && !m.MediaType.IsImage() && m.MediaType != "":
		default:
			fit = append(fit, m)
		}
	}
	slices.Sort(tags)
	tags = slices.Compact(tags)
	// One that is there under several names is one.
	slices.SortStableFunc(fit, func(a, b v1.Descriptor) int { return strings.Compare(a.Digest.String(), b.Digest.String()) })
	fit = slices.CompactFunc(fit, func(a, b v1.Descriptor) bool { return a.Digest == b.Digest })
	switch {
	case len(fit) == 0:
		return v1.Descriptor{}, fmt.Errorf("it has no such image for %s (has %d, tagged %s)", platform, len(index.Manifests), strings.Join(tags, ", "))
	case len(fit) > 1 && ref.kind != "":
		return v1.Descriptor{}, fmt.Errorf("it has %d images: name one with :TAG (have %s) or @sha256:DIGEST", len(fit), strings.Join(tags, ", "))
	}
	return fit[0], nil
}
