package images

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Cached returns the layers of a directory that commands of builds find as the last of them left it, the lowest first. It has
// none when it is new, or when one of them was removed: see Bound.
func (b Builds) Cached(ctx context.Context, key string) (names []string, err error) {
	d := &b.store.disk
	err = d.locked(ctx, func() error {
		data, err := os.ReadFile(cachePath(d, key))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		names = strings.Fields(string(data))
		now := b.store.opts.Now()
		for _, name := range names {
			have, failed := d.layer(name)
			if err = errors.Join(err, failed); err != nil || have == nil {
				names = nil
				return err
			}
			err = errors.Join(d.use("layer "+name), os.Chtimes(d.layerDir(name)+".json", now, now))
		}
		return err
	})
	return names, err
}

// Cache replaces the layers of such a directory by what change makes of them. One caller at a time does so.
func (b Builds) Cache(ctx context.Context, key string, change func(names []string) ([]string, error)) error {
	held, err := b.Alone(ctx, key+".change")
	if err != nil {
		return err
	}
	names, err := b.Cached(ctx, key)
	if err == nil {
		names, err = change(names)
	}
	if err == nil {
		err = writeFile(cachePath(&b.store.disk, key), []byte(strings.Join(names, "\n")))
	}
	return errors.Join(err, held.Close())
}

// Alone waits until no other caller of any process has what a key stands for.
func (b Builds) Alone(ctx context.Context, key string) (io.Closer, error) {
	path := filepath.Join(b.store.disk.dir, "locks", "cache-"+key)
	held, err := lock(ctx, path)
	return alone{held}, err
}

// alone is the file of a lock.
type alone struct{ *os.File }

// Close removes the file, and lets the next one in.
func (a alone) Close() error { return errors.Join(os.Remove(a.Name()), a.File.Close()) }

func cachePath(d *disk, key string) string { return filepath.Join(d.dir, "caches", key) }
