package export

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"trajgen/outputs/log/blobs"
	"trajgen/outputs/media"
	"trajgen/outputs/rows"
)

// unpackedMedia are the images of media tables, in files where they can be found.
type unpackedMedia struct {
	mu  sync.Mutex // guards what follows
	dir string     // "" before the first image
	err error
}

// Image reads an image that the episodes name: of a run directory, or of the table media of an export.
func (f *Files) Image(sha256 string) ([]byte, error) {
	for _, in := range f.inputs {
		if data, err := media.Open(media.Dir(in.path)).Read(sha256); err == nil {
			return data, nil
		}
	}
	f.media.mu.Lock()
	defer f.media.mu.Unlock()
	if f.media.dir == "" && f.media.err == nil {
		f.media.err = f.unpackMedia()
	}
	if f.media.err != nil {
		return nil, f.media.err
	}
	return (&blobs.Store{Dir: f.media.dir}).Get(sha256)
}

// unpackMedia puts the images of all tables into a temporary directory. A row whose bytes have another digest is not found under it.
func (f *Files) unpackMedia() (err error) {
	if f.media.dir, err = os.MkdirTemp("", "trajgen-media-"); err != nil {
		return fmt.Errorf("read images: %w", err)
	}
	store := &blobs.Store{Dir: f.media.dir}
	for _, in := range f.inputs {
		paths, err := filesIn(filepath.Join(in.path, mediaName), parquetSuffix)
		if err != nil {
			return err
		}
		parts, err := in.openParquet(paths, rows.Medias.Name())
		if err != nil {
			return err
		}
		for at, err := range tableOf[rows.Media](parts) {
			if err != nil {
				return err
			}
			if _, err := store.Keep(at.row.Bytes); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *unpackedMedia) close() error {
	if m.dir == "" {
		return nil
	}
	return os.RemoveAll(m.dir)
}
