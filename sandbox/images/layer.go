package images

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// layer is what is known of a layer beside its files.
type layer struct {
	Bytes   int64 `json:"bytes"` // of the tarball, holes of its files included
	Entries int64 `json:"entries"`
	// OpaqueRoot means that it hides all layers below it.
	OpaqueRoot bool `json:"opaque_root,omitempty"`
	// Implied are directories that it has because something lies in them: their owner and mode are those of a layer below,
	// if one has them.
	Implied []string `json:"implied,omitempty"`
	// Hiding are directories with white-outs.
	Hiding []string `json:"hiding,omitempty"`
}

// part is a layer that an image wants: its name in the store, and how it is made if it is not there.
type part struct {
	name string
	make func(ctx context.Context, dir string, b *budget, notify func(done, total int64)) (layer, error)
}

// budget is what is left of what an image may unpack to. It is shared by all its layers.
type budget struct{ bytes, entries atomic.Int64 }

func (s *Store) newBudget() *budget {
	b := &budget{}
	b.bytes.Store(s.opts.MaxBytes)
	b.entries.Store(s.opts.MaxEntries)
	return b
}

// allowance takes from a budget, and can give back what it took.
type allowance struct {
	budget         *budget
	bytes, entries int64
}

func (a *allowance) take(n int64) error {
	a.bytes += n
	if left := a.budget.bytes.Add(-n); left < 0 || n < 0 {
		return errTooLarge
	}
	return nil
}

func (a *allowance) entry() error {
	a.entries++
	if a.budget.entries.Add(-1) < 0 {
		return fmt.Errorf("%w: too many files", errTooLarge)
	}
	return nil
}

func (a *allowance) refund() {
	a.budget.bytes.Add(a.bytes)
	a.budget.entries.Add(a.entries)
	a.bytes, a.entries = 0, 0
}

// holes takes what a sparse file has beside what is in the tarball.
func (a *allowance) holes(header *tar.Header) error {
	if header.Typeflag == tar.TypeGNUSparse || header.PAXRecords["GNU.sparse.major"] != "" || header.PAXRecords["GNU.sparse.map"] != "" {
		return a.take(header.Size)
	}
	return nil
}

// spend is a reader that takes what it reads from an allowance.
type spend struct {
	from      io.Reader
	allowance *allowance
}

func (s spend) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if taken := s.allowance.take(int64(n)); taken != nil {
		return 0, taken
	}
	return n, err
}

// ensure makes a layer unless it is there. Its name must be in use, see Store.use.
func (s *Store) ensure(ctx context.Context, image string, p part, b *budget) (layer, error) {
	if have, err := s.layer(p.name); err != nil || have != nil {
		return count(have, b), err
	}
	unlock, err := s.lockLayer(ctx, p.name)
	if err != nil {
		return layer{}, err
	}
	made, err := s.makeLocked(ctx, image, p, b)
	return made, errors.Join(err, unlock())
}

// count takes a layer that is there from the budget of an image, which may end a later one.
func count(have *layer, b *budget) layer {
	if have == nil {
		return layer{}
	}
	b.bytes.Add(-have.Bytes)
	b.entries.Add(-have.Entries)
	return *have
}

func (s *Store) makeLocked(ctx context.Context, image string, p part, b *budget) (layer, error) {
	if have, err := s.layer(p.name); err != nil || have != nil {
		return count(have, b), err // somebody else made it
	}
	select {
	case s.unpacks <- struct{}{}:
		defer func() { <-s.unpacks }()
	case <-ctx.Done():
		return layer{}, context.Cause(ctx)
	}
	began := s.opts.Now()
	w, err := s.newWorkplace(ctx)
	if err != nil {
		return layer{}, err
	}
	var done int64
	made, err := s.makeIn(ctx, w, p, b, func(n, total int64) {
		done = n
		s.progress(Progress{Image: image, Layer: p.name, Done: n, Total: total})
	})
	if err := errors.Join(err, w.remove()); err != nil {
		return layer{}, err
	}
	s.progress(Progress{Image: image, Layer: p.name, Done: done, Total: done, Ended: true})
	s.opts.Logger.Info("layer unpacked", "image", image, "layer", p.name, "bytes", made.Bytes, "fetched", done,
		"entries", made.Entries, "seconds", s.opts.Now().Sub(began).Round(time.Millisecond).Seconds())
	return made, nil
}

func (s *Store) progress(p Progress) {
	if s.opts.Progress != nil {
		s.opts.Progress(p)
	}
}

// makeIn makes a layer in a workplace and moves it to where it belongs, when it is on disk for good.
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
	if err := writeFile(s.layerDir(p.name)+".json", data); err != nil {
		return layer{}, err
	}
	if err := os.Rename(dir, s.layerDir(p.name)); err != nil {
		return layer{}, err
	}
	return made, syncDir(filepath.Join(s.dir, "layers"))
}

func (s *Store) layerDir(name string) string { return filepath.Join(s.dir, "layers", name) }

// layer returns what is known of a layer, nil when it is not there.
func (s *Store) layer(name string) (*layer, error) {
	if _, err := os.Stat(s.layerDir(name)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	data, err := os.ReadFile(s.layerDir(name) + ".json")
	if err != nil {
		return nil, err
	}
	var have layer
	if err := json.Unmarshal(data, &have); err != nil {
		return nil, fmt.Errorf("read %s.json: %w", s.layerDir(name), err)
	}
	return &have, nil
}

// blob is a layer that comes as a tarball.
type blob struct {
	diffID string // of the tarball that is not compressed, "sha256:HEX"
	open   func() (stream io.ReadCloser, size int64, err error)
	squash bool
	tries  int // how often it may be read before a broken stream is an error
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
		allowed.refund()
		if err := errors.Join(removeTree(dir), os.Mkdir(dir, 0o700)); err != nil {
			return layer{}, err
		}
	}
}

// unpack reads the stream to its end, and says whether it was the stream that failed.
func (b blob) unpack(ctx context.Context, dir string, allowed *allowance, notify func(done, total int64)) (made layer, broken bool, err error) {
	source, size, err := b.open()
	if err != nil {
		return layer{}, true, fmt.Errorf("fetch layer %s: %w", b.diffID, err)
	}
	defer source.Close()
	raw := &reading{ctx: ctx, from: source, notify: func(n int64) { notify(n, size) }}
	stream, err := decompress(raw)
	if err != nil {
		return layer{}, raw.failed != nil, fmt.Errorf("read layer %s: %w", b.diffID, err)
	}
	defer stream.Close()
	hash := sha256.New()
	tee := io.TeeReader(spend{stream, allowed}, hash)
	made, err = unpack(tee, dir, b.squash, allowed)
	if err == nil {
		_, err = io.Copy(io.Discard, tee) // what follows the tarball's end belongs to its hash
	}
	if err == nil {
		_, err = io.Copy(io.Discard, raw) // to where what was compressed is verified
	}
	if err != nil {
		return layer{}, raw.failed != nil, fmt.Errorf("layer %s: %w", b.diffID, err)
	}
	if have := "sha256:" + hex.EncodeToString(hash.Sum(nil)); have != b.diffID {
		return layer{}, false, fmt.Errorf("layer %s is damaged or forged: it unpacks to %s", b.diffID, have)
	}
	made.Bytes = allowed.bytes
	return made, false, nil
}

// isFull says whether an error is that of a disk without room.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
