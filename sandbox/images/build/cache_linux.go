package build

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"

	"trajgen/sandbox"
	"trajgen/sandbox/images"
)

// cache is what a RUN --mount=type=cache keeps. A command works on a copy of what those before it left, and what it changes is
// laid on top. So commands at the same time do not see each other's files, and nothing that fails leaves half of one.
type cache struct {
	key    string
	alone  bool     // others wait until the command has ended
	layers []string // when the command began, the lowest first
}

// maxCacheLayers is how many layers a cache has before one is made of them.
const maxCacheLayers = 12

func newCache(m *instructions.Mount, target string) *cache {
	id := m.CacheID
	if id == "" {
		id = target
	}
	return &cache{
		key:   fmt.Sprintf("%x", sha256.Sum256([]byte(id+"\x00"+target))),
		alone: m.CacheSharing == instructions.MountSharingLocked,
	}
}

// caches are what a store has for commands.
type caches struct{ store *images.Store }

// open finds what the caches of a command hold, and lays it on top. Until the caller calls release, no other command has
// those that want to be alone.
func (c caches) open(ctx context.Context, r *command) (release func() error, err error) {
	var held []io.Closer
	release = func() (err error) {
		for _, h := range held {
			err = errors.Join(err, h.Close())
		}
		return err
	}
	// In one order everywhere, so that no two commands wait for each other.
	for _, one := range slices.SortedFunc(r.caches(), func(a, b *cache) int { return strings.Compare(a.key, b.key) }) {
		if one.alone {
			h, err := c.store.Builds().Alone(ctx, one.key)
			if err != nil {
				return release, err
			}
			held = append(held, h)
		}
		if one.layers, err = c.store.Builds().Cached(ctx, one.key); err != nil {
			return release, err
		}
		r.layers = append(r.layers, one.layers...)
	}
	return release, nil
}

// caches are those of a command.
func (r *command) caches() func(yield func(*cache) bool) {
	return func(yield func(*cache) bool) {
		for _, m := range r.Mounts {
			if m.cache != nil && !yield(m.cache) {
				return
			}
		}
	}
}

// keep adds what a command changed in its caches.
func (c caches) keep(ctx context.Context, r *command, changed sandbox.Layered) error {
	for _, m := range r.Mounts {
		if m.cache == nil {
			continue
		}
		text, err := json.Marshal([]any{"cache 1", m.cache.key, r, r.layers})
		if err != nil {
			return err
		}
		found := false
		name, _, err := c.store.Builds().Layer(ctx, fmt.Sprintf("%x", sha256.Sum256(text)), func(ctx context.Context, add adder) error {
			return changed.Layer(ctx, func(h *tar.Header, content io.Reader) error {
				if r.mountOf(h.Name) != m.Target || shown(h.Name) == m.Target && h.Typeflag != tar.TypeDir && path.Base(h.Name) != opaque {
					return nil // another mount's, or the directory itself is gone, which elsewhere cannot be
				}
				found = true
				return add(h, content)
			})
		})
		if err == nil && found {
			err = c.store.Builds().Cache(ctx, m.cache.key, func(names []string) ([]string, error) {
				return c.merge(ctx, m.Target, append(names, name))
			})
		}
		if err != nil {
			return fmt.Errorf("keep the cache %s: %w", m.Target, err)
		}
	}
	return nil
}

// merge makes one layer of many.
func (c caches) merge(ctx context.Context, target string, names []string) ([]string, error) {
	if len(names) < maxCacheLayers {
		return names, nil
	}
	image, err := c.store.Builds().Stack(ctx, names)
	if err != nil {
		return nil, err
	}
	key := fmt.Sprintf("%x", sha256.Sum256([]byte("merged\x00"+strings.Join(names, "\x00"))))
	name, _, err := c.store.Builds().Layer(ctx, key, func(_ context.Context, add adder) error {
		return whole(c.store.View(image), target, target, add)
	})
	return []string{name}, err
}
