package images

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// fromDocker finds an image in what docker save has written.
func (s *Store) fromDocker(ctx context.Context, ref reference) (_ *source, err error) {
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
	data, err := document(from, "manifest.json", "")
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, forms)
	}
	var images []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(data, &images); err != nil {
		return nil, fmt.Errorf("read its manifest.json: %w", err)
	}
	var tags []string
	at := -1
	for i, image := range images {
		tags = append(tags, image.RepoTags...)
		if ref.tag != "" && !slices.ContainsFunc(image.RepoTags, func(tag string) bool { return tag == ref.tag || tag == ref.tag+":latest" }) {
			continue
		}
		if at >= 0 {
			at = len(images)
			continue
		}
		at = i
	}
	switch {
	case at == len(images) && at > 0:
		return nil, fmt.Errorf("it has several images: name one with :TAG (have %s)", strings.Join(tags, ", "))
	case at < 0:
		return nil, fmt.Errorf("it has no such image (have %s)", strings.Join(tags, ", "))
	}
	if data, err = document(from, images[at].Config, ""); err != nil {
		return nil, err
	}
	config, err := v1.ParseConfigFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read its configuration: %w", err)
	}
	// It is called after its configuration, as docker does, which names the content of each layer.
	found.digest = digestOf(data)
	var opens []func(context.Context) (io.ReadCloser, int64, error)
	for _, l := range images[at].Layers {
		opens = append(opens, opener(from, l))
	}
	return found, s.fill(found, config, 1, opens)
}
