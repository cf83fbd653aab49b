package images

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"trajgen/sandbox"
)

// Builds are what builds need of a store: the images that they begin with, the layers that they make, and what becomes of both.
type Builds struct{ store *Store }

// Builds returns what builds need of this store.
func (s *Store) Builds() Builds { return Builds{s} }

// builtPrefix begins the names of layers that builds make.
const builtPrefix = "build-"

// Base is an image that another one is built on.
type Base struct {
	Digest string
	Layers []string // names, the lowest first
	Config v1.Config
}

// Base finds an image as Store.Find does.
func (b Builds) Base(ctx context.Context, reference string) (Base, error) {
	image, err := b.store.Find(ctx, reference)
	if err != nil {
		return Base{}, err
	}
	var base Base
	err = b.store.disk.recorded(ctx, func(all []*record) error {
		i := slices.IndexFunc(all, func(r *record) bool { return r.Digest == image.Digest })
		switch {
		case i < 0:
			return ErrNotStored
		case all[i].Config == nil:
			return fmt.Errorf("it was fetched by an older version of trajgen, without what a build needs: trajgen image remove %s, and build again", reference)
		}
		base = Base{Digest: image.Digest, Layers: slices.Clone(all[i].Layers), Config: *all[i].Config}
		slices.Reverse(base.Layers)
		return nil
	})
	if err != nil {
		err = fmt.Errorf("image %s: %w", reference, err)
	}
	return base, err
}

// KeepsOwners reports whether files have the owners that images give them. If not, all are this user's, who is root in sandboxes.
func (b Builds) KeepsOwners() bool { return !b.store.disk.squash }

// Fill adds the entries of a layer, as those of a tarball. The content of a regular file has the size that its header says.
type Fill = func(ctx context.Context, add func(header *tar.Header, content io.Reader) error) error

// Layer makes the layer of a build, unless it is there: another process may have made it, or be about to. A key stands for the
// content. Layer returns the layer's name.
func (b Builds) Layer(ctx context.Context, key string, fill Fill) (name string, made bool, err error) {
	name = builtPrefix + key
	p := part{name: name, unbounded: true}
	p.make = func(ctx context.Context, dir string, left *budget, _ func(done, total int64)) (layer, error) {
		made = true
		return makeLayer(ctx, dir, b.store.disk.squash, left, fill)
	}
	if _, err := b.store.ensureAll(ctx, "", []part{p}); err != nil {
		return "", made, err
	}
	now := b.store.opts.Now()
	return name, made, os.Chtimes(b.store.disk.layerDir(name)+".json", now, now) // see Bound
}

// Stack returns the file system of layers, the lowest first, and what a build on top of it needs to know.
func (b Builds) Stack(ctx context.Context, names []string) (sandbox.Image, error) {
	stacked, err := b.cover(ctx, names)
	image := sandbox.Image{}
	for _, name := range stacked {
		image.Layers = append(image.Layers, filepath.Join("layers", name))
	}
	return image, err
}

// cover returns the names of an image's layers, the uppermost first, with the one that corrects directories.
func (b Builds) cover(ctx context.Context, names []string) ([]string, error) {
	parts, layers := make([]part, len(names)), make([]layer, len(names))
	for i, name := range names {
		have, err := b.store.disk.layer(name)
		if err == nil && have == nil {
			err = fmt.Errorf("layer %s is gone", name)
		}
		if err != nil {
			return nil, err
		}
		parts[i], layers[i] = part{name: name}, *have
	}
	stacked, layers := stack(parts, layers)
	cover, err := b.store.disk.cover(stacked, layers)
	if err != nil || cover == nil {
		return stacked, err
	}
	_, err = b.store.ensureAll(ctx, "", []part{*cover})
	return slices.Insert(stacked, 0, cover.name), err
}

// Keep records an image that was built of layers, the lowest first, under names.
func (b Builds) Keep(ctx context.Context, digest string, names []string, config v1.Config, references ...string) error {
	stacked, err := b.cover(ctx, names)
	if err != nil {
		return err
	}
	r := &record{
		Digest: digest, Env: config.Env, Workdir: config.WorkingDir, User: config.User, Config: &config, Layers: stacked,
		Fetched: b.store.opts.Now().UTC(),
	}
	for _, name := range stacked {
		have, err := b.store.disk.layer(name)
		if err != nil || have == nil {
			return cmp.Or(err, fmt.Errorf("layer %s is gone", name))
		}
		r.Bytes += have.Bytes
	}
	return b.store.disk.recorded(ctx, func(all []*record) error {
		for _, old := range all {
			if old.Digest == digest {
				r.References = old.References
			}
		}
		if err := b.store.disk.use("image " + digest); err != nil {
			return err
		}
		for _, reference := range references {
			if err := b.store.disk.rename(all, r, named{Name: reference}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Rename gives an image a further name, which another image may have had.
func (b Builds) Rename(ctx context.Context, digest, reference string) error {
	return b.store.disk.recorded(ctx, func(all []*record) error {
		i := slices.IndexFunc(all, func(r *record) bool { return r.Digest == digest })
		if i < 0 {
			return ErrNotStored
		}
		return b.store.disk.rename(all, all[i], named{Name: reference})
	})
}

// Bound removes the layers of builds that were used least recently, and images made of them, until those that are left have at
// most a number of bytes. What an open store uses stays.
func (b Builds) Bound(ctx context.Context, most int64) error {
	w, err := b.store.disk.newWorkplace(ctx)
	if err != nil {
		return err
	}
	err = b.store.disk.recorded(ctx, func(all []*record) error { return b.store.disk.bound(w, all, most) })
	return errors.Join(err, w.remove())
}

type aged struct {
	name  string
	bytes int64
	used  time.Time
}

// bound moves layers to a workplace. The caller holds the store's lock.
func (d *disk) bound(w *workplace, all []*record, most int64) error {
	used, err := d.used()
	if err != nil {
		return err
	}
	for _, r := range all {
		for _, name := range r.Layers {
			used["layer "+name] = used["layer "+name] || used["image "+r.Digest]
		}
	}
	built, total, err := d.built()
	for _, l := range built {
		if err != nil || total <= most {
			return err
		}
		if used["layer "+l.name] {
			continue
		}
		for _, r := range all {
			if slices.Contains(r.Layers, l.name) {
				err = errors.Join(err, removeIfThere(d.recordPath(r.Digest)))
			}
		}
		for _, path := range []string{d.layerDir(l.name), d.layerDir(l.name) + ".json"} {
			err = errors.Join(err, os.Rename(path, filepath.Join(w.path, filepath.Base(path))))
		}
		total -= l.bytes
	}
	return err
}

// built returns the layers of builds, that which was used longest ago first, and their size.
func (d *disk) built() (all []aged, total int64, err error) {
	entries, err := os.ReadDir(filepath.Join(d.dir, "layers"))
	for _, entry := range entries {
		if err != nil {
			return nil, 0, err
		}
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), builtPrefix) {
			continue
		}
		have, failed := d.layer(entry.Name())
		info, failed2 := os.Stat(d.layerDir(entry.Name()) + ".json")
		if err = errors.Join(failed, failed2); err == nil {
			// An entry costs about a block, also without content.
			l := aged{name: entry.Name(), bytes: have.Bytes + have.Entries<<12, used: info.ModTime()}
			all, total = append(all, l), total+l.bytes
		}
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Or(a.used.Compare(b.used), strings.Compare(a.name, b.name)) })
	return all, total, err
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
