package images

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"trajgen/sandbox/internal/state"
)

// layer is the record of a layer.
type layer struct {
	Bytes   int64 `json:"bytes"` // size of the tarball, with the holes of its files
	Entries int64 `json:"entries"`
	// OpaqueRoot means that the layer hides all layers below it.
	OpaqueRoot bool `json:"opaque_root,omitempty"`
	// Implied are directories without an entry of their own: their owner and mode are those of a layer below, if one has them.
	Implied []string `json:"implied,omitempty"`
	// Hiding are directories with white-outs.
	Hiding []string `json:"hiding,omitempty"`
}

// part is a layer of an image: its name in the store, and how to make it.
type part struct {
	name string
	// unbounded are made beside the limited number of layers that are unpacked at once: builds take their time, and have a
	// limit of their own.
	unbounded bool
	make      func(ctx context.Context, dir string, b *budget, notify func(done, total int64)) (layer, error)
}

// budget is what is left of an image's maximum size. All its layers share it.
type budget struct{ bytes, entries atomic.Int64 }

func newBudget(bytes, entries int64) *budget {
	b := &budget{}
	b.bytes.Store(bytes)
	b.entries.Store(entries)
	return b
}

// allowance takes from a budget, and counts what it took.
type allowance struct {
	budget         *budget
	bytes, entries int64
}

// errTooLarge means that an image unpacks to more than the store allows.
var errTooLarge = errors.New("it unpacks to more than the image store allows")

// read takes n bytes.
func (a *allowance) read(n int) error { return a.take(int64(n), 0) }

func (a *allowance) take(bytes, entries int64) error {
	a.bytes += bytes
	a.entries += entries
	if a.budget.bytes.Add(-bytes) < 0 || a.budget.entries.Add(-entries) < 0 {
		return errTooLarge
	}
	return nil
}

// reading is a reader that ends with its context, and when too much was read.
type reading struct {
	ctx    context.Context
	from   io.Reader
	took   func(n int) error
	failed error // error of from, but for io.EOF
}

func (r *reading) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = err
	}
	if err := r.took(n); err != nil {
		return 0, err
	}
	return n, err
}

// atMost bounds the number of bytes.
func atMost(bytes int64) func(n int) error {
	return func(n int) error {
		if bytes -= int64(n); bytes < 0 {
			return errTooLarge
		}
		return nil
	}
}

// ensureAll makes the missing layers, several at once.
func (s *Store) ensureAll(ctx context.Context, image string, parts []part) ([]layer, error) {
	err := s.disk.locked(ctx, func() error {
		var use []string
		for _, p := range parts {
			use = append(use, "layer "+p.name)
		}
		return s.disk.use(use...)
	})
	if err != nil {
		return nil, err
	}
	made := make([]layer, len(parts))
	b := newBudget(s.opts.MaxBytes, s.opts.MaxEntries)
	group, ctx := errgroup.WithContext(ctx)
	for i, p := range parts {
		group.Go(func() (err error) {
			made[i], err = s.ensure(ctx, image, p, b)
			return err
		})
	}
	return made, group.Wait()
}

// ensure makes a layer unless it exists. Its name must be in use, see Store.use.
func (s *Store) ensure(ctx context.Context, image string, p part, b *budget) (_ layer, err error) {
	path := filepath.Join(s.disk.dir, "locks", p.name)
	held, err := lock(ctx, path)
	if err != nil {
		return layer{}, err
	}
	defer func() { err = errors.Join(err, os.Remove(path), held.Close()) }()
	have, err := s.disk.layer(p.name)
	if err != nil {
		return layer{}, err
	}
	if have != nil {
		// Existing layers count, too, and may end another layer of the image.
		b.bytes.Add(-have.Bytes)
		b.entries.Add(-have.Entries)
		return *have, nil
	}
	if !p.unbounded {
		select {
		case s.unpacks <- struct{}{}:
			defer func() { <-s.unpacks }()
		case <-ctx.Done():
			return layer{}, context.Cause(ctx)
		}
	}
	began := s.opts.Now()
	w, err := s.disk.newWorkplace(ctx)
	if err != nil {
		return layer{}, err
	}
	var done int64
	made, err := s.makeIn(ctx, w, p, b, func(n, total int64) {
		done = n
		s.opts.Progress(Progress{Image: image, Layer: p.name, Done: n, Total: total})
	})
	if err := errors.Join(err, w.remove()); err != nil {
		return layer{}, err
	}
	s.opts.Progress(Progress{Image: image, Layer: p.name, Done: done, Total: done, Ended: true})
	s.opts.Logger.Info("layer unpacked", "image", image, "layer", p.name, "bytes", made.Bytes, "fetched", done,
		"entries", made.Entries, "seconds", s.opts.Now().Sub(began).Round(time.Millisecond).Seconds())
	return made, nil
}

// makeIn makes a layer in a workplace, syncs it, and moves it to its place.
func (s *Store) makeIn(ctx context.Context, w *workplace, p part, b *budget, notify func(done, total int64)) (layer, error) {
	dir := filepath.Join(w.path, "layer")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return layer{}, err
	}
	made, err := p.make(ctx, dir, b, notify)
	if err != nil {
		return layer{}, err
	}
	if err := syncTree(dir); err != nil {
		return layer{}, fmt.Errorf("write %s to disk: %w", p.name, err)
	}
	data, err := json.Marshal(made)
	if err != nil {
		return layer{}, err
	}
	if err := writeFile(s.disk.layerDir(p.name)+".json", data); err != nil {
		return layer{}, err
	}
	if err := os.Rename(dir, s.disk.layerDir(p.name)); err != nil {
		return layer{}, err
	}
	return made, syncDir(filepath.Join(s.disk.dir, "layers"))
}

func (d *disk) layerDir(name string) string { return filepath.Join(d.dir, "layers", name) }

// layer returns the record of a layer, or nil when it does not exist.
func (d *disk) layer(name string) (*layer, error) {
	if _, err := os.Stat(d.layerDir(name)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	data, err := os.ReadFile(d.layerDir(name) + ".json")
	if err != nil {
		return nil, err
	}
	have := &layer{}
	if err := json.Unmarshal(data, have); err != nil {
		return nil, fmt.Errorf("read %s.json: %w", d.layerDir(name), err)
	}
	return have, nil
}

// stack reverses the layers of an image, which are given lowest first. It leaves out empty layers, those below an opaque one,
// and all but the uppermost of repeated ones, which the kernel refuses. At least one layer is left.
func stack(parts []part, made []layer) (names []string, layers []layer) {
	for i, p := range slices.Backward(parts) {
		last := made[i].OpaqueRoot || i == 0
		if made[i].Entries > 0 && !slices.Contains(names, p.name) || last && len(names) == 0 {
			names, layers = append(names, p.name), append(layers, made[i])
		}
		if made[i].OpaqueRoot {
			break
		}
	}
	return names, layers
}

// blob is a layer from a tarball.
type blob struct {
	diffID string // of the uncompressed tarball, "sha256:HEX"
	open   func() (stream io.ReadCloser, size int64, err error)
	squash bool
	tries  int // reads before a broken stream is an error
}

func (b blob) part() part {
	return part{name: strings.Replace(b.diffID, ":", "-", 1), make: b.make}
}

func (b blob) make(ctx context.Context, dir string, limit *budget, notify func(done, total int64)) (layer, error) {
	for try := 1; ; try++ {
		allowed := &allowance{budget: limit}
		made, broken, err := b.unpack(ctx, dir, allowed, notify)
		if err == nil || !broken || try >= b.tries || ctx.Err() != nil {
			return made, err
		}
		select {
		case <-time.After(time.Duration(try) * time.Second):
		case <-ctx.Done():
			return layer{}, context.Cause(ctx)
		}
		limit.bytes.Add(allowed.bytes)
		limit.entries.Add(allowed.entries)
		if err := errors.Join(state.RemoveTree(dir), os.Mkdir(dir, 0o700)); err != nil {
			return layer{}, err
		}
	}
}

// unpack reads the whole stream, and reports whether an error came from the stream.
func (b blob) unpack(ctx context.Context, dir string, allowed *allowance, notify func(done, total int64)) (made layer, broken bool, err error) {
	source, size, err := b.open()
	if err != nil {
		return layer{}, true, fmt.Errorf("fetch layer %s: %w", b.diffID, err)
	}
	defer source.Close()
	var fetched int64
	raw := &reading{ctx: ctx, from: source, took: func(n int) error {
		fetched += int64(n)
		notify(fetched, size)
		return nil
	}}
	hash := sha256.New()
	stream, err := Decompress(raw)
	if err == nil {
		tee := io.TeeReader(&reading{ctx: ctx, from: stream, took: allowed.read}, hash)
		if made, err = unpack(tee, dir, b.squash, allowed); err == nil {
			_, err = io.Copy(io.Discard, tee) // the hash includes what follows the tarball's end
		}
	}
	if err == nil {
		_, err = io.Copy(io.Discard, raw) // the reader verifies the compressed data at its end
	}
	if err != nil {
		return layer{}, raw.failed != nil, fmt.Errorf("layer %s: %w", b.diffID, err)
	}
	if have := fmt.Sprintf("sha256:%x", hash.Sum(nil)); have != b.diffID {
		return layer{}, false, fmt.Errorf("layer %s is damaged or forged: it unpacks to %s", b.diffID, have)
	}
	made.Bytes = allowed.bytes
	return made, false, nil
}
