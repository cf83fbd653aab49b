// Package media keeps the images of a run beside its journal, as models get them, and files that tools gave, each once.
package media

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"trajgen/outputs/log/blobs"
	"trajgen/outputs/media/picture"
	"trajgen/pipeline/episode"
)

// Dir is where a run directory has its images.
func Dir(run string) string { return filepath.Join(run, "images") }

// Store is a directory of images. It is safe for concurrent use. The zero value keeps them in a temporary directory, which Close
// removes.
type Store struct {
	mu        sync.Mutex // guards what follows
	blobs     *blobs.Store
	temporary string
}

// Open is the store of a directory, which is made when an image is kept.
func Open(dir string) *Store { return &Store{blobs: &blobs.Store{Dir: dir}} }

// Move has the store keep images in a directory from now on. It is called before the first one.
func (s *Store) Move(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs = &blobs.Store{Dir: dir}
}

// Keep prepares an image for models and keeps it: it is on the disk when Keep returns. An image that cannot be used is a
// *picture.Unusable.
func (s *Store) Keep(mime string, data []byte) (episode.Part, error) {
	ready, err := picture.Prepare(mime, data)
	if err != nil {
		return episode.Part{}, err
	}
	store, err := s.store()
	if err != nil {
		return episode.Part{}, err
	}
	name, err := store.Keep(ready.Data)
	part := episode.Part{
		Type: episode.PartImage, SHA256: name, MIME: ready.MIME, Width: ready.Width, Height: ready.Height, Bytes: len(ready.Data),
	}
	if original := blobs.Digest(data); original != name {
		part.Original = original
	}
	return part, err
}

// KeepFile implements registry.Files.
func (s *Store) KeepFile(mime string, data []byte) (episode.Part, error) {
	store, err := s.store()
	if err != nil {
		return episode.Part{}, err
	}
	name, err := store.Keep(data)
	return episode.Part{Type: episode.PartFile, SHA256: name, MIME: mime, Bytes: len(data)}, err
}

// Read reads an image that was kept.
func (s *Store) Read(sha256 string) ([]byte, error) {
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	data, err := store.Get(sha256)
	if err != nil {
		return nil, fmt.Errorf("image %w", err)
	}
	return data, nil
}

func (s *Store) store() (*blobs.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blobs == nil {
		dir, err := os.MkdirTemp("", "trajgen-images-")
		if err != nil {
			return nil, fmt.Errorf("keep images: %w", err)
		}
		s.blobs, s.temporary = &blobs.Store{Dir: dir}, dir
	}
	return s.blobs, nil
}

// Close removes images that were kept in no run directory.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.temporary == "" {
		return nil
	}
	return os.RemoveAll(s.temporary)
}

// Copy takes over the images of an episode from another store.
func (s *Store) Copy(from *Store, ep *episode.Episode) error {
	store, err := s.store()
	if err != nil {
		return err
	}
	var errs []error
	for _, image := range ep.Images() {
		data, err := from.Read(image.SHA256)
		if err == nil {
			_, err = store.Keep(data)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
