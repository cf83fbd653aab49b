package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Stored is an image on disk.
type Stored struct {
	Digest     string    `json:"digest"`
	References []string  `json:"references"` // references that last resolved to it
	Layers     int       `json:"layers"`
	Bytes      int64     `json:"bytes"` // of its layers as tarballs, including shared ones
	Fetched    time.Time `json:"fetched"`
	InUse      bool      `json:"in_use"` // an open store uses it
}

// ErrInUse means that an image cannot be removed, because an open store uses it.
var ErrInUse = errors.New("it is in use")

// ErrNotStored means that there is no such image in the store.
var ErrNotStored = errors.New("there is no such image in the store")

// List returns the images on disk, sorted by their first reference.
func (s *Store) List(ctx context.Context) ([]Stored, error) {
	stored := []Stored{}
	err := s.disk.recorded(ctx, func(all []*record) error {
		used, err := s.disk.used()
		if err != nil {
			return err
		}
		for _, r := range all {
			image := Stored{Digest: r.Digest, References: []string{}, Layers: len(r.Layers), Bytes: r.Bytes, Fetched: r.Fetched, InUse: used["image "+r.Digest]}
			for _, n := range r.References {
				image.References = append(image.References, n.Name)
			}
			slices.Sort(image.References)
			stored = append(stored, image)
		}
		return nil
	})
	slices.SortFunc(stored, func(a, b Stored) int {
		return cmp.Or(slices.Compare(a.References, b.References), cmp.Compare(a.Digest, b.Digest))
	})
	return stored, err
}

// Remove removes an image, by a reference or its digest, and the layers that no other image has. When it has other references,
// only the given one is removed.
func (s *Store) Remove(ctx context.Context, reference string) error {
	if err := s.remove(ctx, reference); err != nil {
		return fmt.Errorf("remove image %s: %w", reference, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, text string) error {
	w, err := s.disk.newWorkplace(ctx)
	if err != nil {
		return err
	}
	err = s.disk.recorded(ctx, func(all []*record) error {
		r, name, err := pick(all, text)
		if err != nil {
			return err
		}
		if name != "" && len(r.References) > 1 {
			r.forget(name)
			return s.disk.save(r)
		}
		used, err := s.disk.used()
		if err != nil {
			return err
		}
		if used["image "+r.Digest] {
			return ErrInUse
		}
		if err := os.Remove(s.disk.recordPath(r.Digest)); err != nil {
			return err
		}
		return s.disk.collect(w, used, slices.DeleteFunc(all, func(other *record) bool { return other == r }))
	})
	return errors.Join(err, w.remove())
}

// pick finds the image that a text names, and the reference, unless the text is a digest.
func pick(all []*record, text string) (*record, string, error) {
	// The file of a path may be gone by now; compare paths as they were recorded.
	name := text
	if ref, err := parse(text); err == nil {
		name = ref.text
	}
	for _, r := range all {
		if r.Digest == text {
			return r, "", nil
		}
		if r.has(name) {
			return r, name, nil
		}
	}
	return nil, "", ErrNotStored
}

// collect moves layers that no open store uses to a workplace, where they are removed without the lock. The caller holds the
// store's lock.
func (d *disk) collect(w *workplace, used map[string]bool, all []*record) error {
	for _, r := range all {
		for _, name := range r.Layers {
			used["layer "+name] = true
		}
	}
	layers := filepath.Join(d.dir, "layers")
	entries, err := os.ReadDir(layers)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := strings.TrimSuffix(entry.Name(), ".json")
		if used["layer "+name] || strings.HasPrefix(name, builtPrefix) {
			continue // layers of builds have a bound of their own: see Builds.Bound
		}
		if err := os.Rename(filepath.Join(layers, entry.Name()), filepath.Join(w.path, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}
