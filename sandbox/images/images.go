// Package images keeps the file systems of images on this machine's disk: it implements sandbox.ImageStore for registries, OCI
// layouts, docker archives, tarballs and directories.
//
// A store is a directory:
//
//	layers/NAME/        a layer, as a lower directory of an overlay file system; complete if it is there
//	layers/NAME.json    what is known of it
//	images/DIGEST.json  an image: its layers, uppermost first, and how it wants to be used
//	caches/KEY          the layers of a directory that commands of builds keep, lowest first
//	users/              a file for each store that is open, locked while it lives: what must not be removed
//	tmp/                what is being made or removed; locked while a process does so
//	locks/              a file for each layer that is being made, and each cache that is being changed
//	lock                guards images, caches, users and the names in layers and tmp; held for moments
//
// Several processes may use a store at once. A process that dies leaves its work in tmp, and the next Open removes it.
//
// Root keeps owners, modes and capabilities as images have them. For other users, all files are their own, and modes also give
// them what root in a container does regardless of modes: read every file, and read, search and change every directory. The
// rest of a mode, including set-id bits, is the image's; other users cannot enter a store, so set-id bits give them no rights.
// Device nodes are left out.
package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"trajgen/sandbox"
)

// Options configure a store. Dir is required.
type Options struct {
	// Dir is the store's directory, which Open makes: see DefaultDir.
	Dir string
	// Unprivileged makes all files this user's, also for root.
	Unprivileged bool
	// MaxBytes and MaxEntries bound the unpacked size of an image. 0 is 64 GiB and 20 million.
	MaxBytes, MaxEntries int64
	// Progress receives the progress of each layer. It is called from many goroutines.
	Progress func(Progress)
	// Now returns the time. Nil is time.Now.
	Now func() time.Time
	// Logger receives each unpacked layer, and leftovers. Nil logs nothing.
	Logger *slog.Logger
}

// Progress is the progress of a layer.
type Progress struct {
	Image string // requested reference
	Layer string // name in the store
	Done  int64  // bytes, compressed if the layer is
	Total int64  // 0 when it is not known
	Ended bool   // the last report of this layer
}

// parallel is how many layers are unpacked at once.
const parallel = 4

// Store is an image store. Its methods may be called from many goroutines at once.
type Store struct {
	disk    disk
	reader  reader
	opts    Options
	unpacks chan struct{} // limits unpacking in parallel

	mu      sync.Mutex // guards what follows
	found   map[string]*finding
	closed  bool
	running sync.WaitGroup // searches in progress
}

// finding is the search for an image, which may have ended.
type finding struct {
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when image and err are set
	image  sandbox.Image
	err    error
}

// errClosed is the cause that ends searches when the store is closed.
var errClosed = errors.New("image store is closed")

var _ sandbox.ImageStore = (*Store)(nil)

// DefaultDir is the default directory of a user's store: cacheDir is os.UserCacheDir, if there is one.
func DefaultDir(uid int, cacheDir string) string {
	switch {
	case uid == 0:
		return "/var/lib/trajgen/images"
	case cacheDir != "":
		return filepath.Join(cacheDir, "trajgen", "images")
	}
	return filepath.Join(os.TempDir(), "trajgen-"+strconv.Itoa(uid), "images")
}

// Open opens the store in a directory, which it makes. It fails where the file system cannot hold layers, and removes leftovers
// of dead processes.
func Open(opts Options) (*Store, error) {
	if opts.Dir == "" {
		return nil, errors.New("open image store: no directory is named")
	}
	if opts.MaxBytes < 0 || opts.MaxEntries < 0 {
		return nil, errors.New("open image store: a limit is negative")
	}
	opts.MaxBytes, opts.MaxEntries = cmp.Or(opts.MaxBytes, 64<<30), cmp.Or(opts.MaxEntries, 20e6)
	opts.Logger = cmp.Or(opts.Logger, slog.New(slog.DiscardHandler))
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Progress == nil {
		opts.Progress = func(Progress) {}
	}
	dir, err := filepath.Abs(opts.Dir)
	if err != nil {
		return nil, err
	}
	squash := opts.Unprivileged || os.Geteuid() != 0
	s := &Store{
		disk: disk{dir: dir, squash: squash}, opts: opts,
		reader:  reader{store: dir, squash: squash, maxBytes: opts.MaxBytes, maxEntries: opts.MaxEntries},
		unpacks: make(chan struct{}, parallel), found: map[string]*finding{},
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open image store %s: %w", dir, err)
	}
	return s, nil
}

func (s *Store) open() error {
	for _, sub := range []string{"", "layers", "images", "caches", "users", "tmp", "locks"} {
		if err := os.MkdirAll(filepath.Join(s.disk.dir, sub), 0o700); err != nil {
			return err
		}
	}
	// An existing directory may be open to other users.
	if err := os.Chmod(s.disk.dir, 0o700); err != nil {
		return err
	}
	ctx := context.Background()
	err := s.disk.locked(ctx, func() (err error) {
		if s.disk.user, err = os.CreateTemp(filepath.Join(s.disk.dir, "users"), "store-*"); err != nil {
			return err
		}
		if _, err := tryLock(s.disk.user); err != nil {
			return err
		}
		return s.disk.checkFormat()
	})
	if err == nil {
		err = s.disk.sweep(ctx, s.opts.Logger)
	}
	if err == nil {
		err = s.disk.probe(ctx)
	}
	if err != nil && s.disk.user != nil {
		err = errors.Join(err, s.Close())
	}
	return err
}

// checkFormat keeps layers with owners and layers without from being mixed in a store.
func (d *disk) checkFormat() error {
	want := "version 1, owners kept\n"
	if d.squash {
		want = fmt.Sprintf("version 1, all owned by %d\n", os.Geteuid())
	}
	path := filepath.Join(d.dir, "format")
	have, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return writeFile(path, []byte(want))
	}
	if err != nil {
		return err
	}
	if string(have) != want {
		return fmt.Errorf("it is a store of another kind (%s, want %s): choose another directory with --image-dir",
			strings.TrimSpace(string(have)), strings.TrimSpace(want))
	}
	return nil
}

// Dir implements sandbox.ImageStore.
func (s *Store) Dir() string { return s.disk.dir }

// Close ends searches, and lets other processes remove the images that this store used.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, f := range s.found {
		f.cancel(errClosed)
	}
	s.mu.Unlock()
	s.running.Wait()
	return errors.Join(os.Remove(s.disk.user.Name()), s.disk.user.Close())
}

// Find returns an image, which it fetches and unpacks when it is missing. A reference is resolved once: a tag or a directory
// that changes afterwards stays the same image for this store.
func (s *Store) Find(ctx context.Context, reference string) (sandbox.Image, error) {
	err := context.Cause(ctx)
	if err == nil {
		f := s.finding(ctx, reference)
		select {
		case <-f.done:
			if f.err == nil {
				return f.image, nil
			}
			err = f.err
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	return sandbox.Image{}, fmt.Errorf("image %s: %w", reference, err)
}

// finding starts a search, which concurrent callers share. It goes on when they give up, until the store is closed.
func (s *Store) finding(ctx context.Context, reference string) *finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f, ok := s.found[reference]; ok {
		return f
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &finding{cancel: cancel, done: make(chan struct{})}
	if s.closed {
		f.err = errClosed
		close(f.done)
		return f
	}
	s.found[reference] = f
	s.running.Go(func() {
		defer close(f.done)
		f.image, f.err = s.find(ctx, reference)
		cancel(nil)
		if f.err != nil {
			f.err = explain(s.disk.dir, reference, f.err)
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.found, reference)
		}
	})
	return f
}

func (s *Store) find(ctx context.Context, text string) (sandbox.Image, error) {
	ref, err := parse(text)
	if err != nil {
		return sandbox.Image{}, err
	}
	if known, err := s.known(ctx, ref); err != nil || known != nil {
		return known.image(), err
	}
	scratch, err := s.disk.newWorkplace(ctx)
	if err != nil {
		return sandbox.Image{}, err
	}
	var record *record
	found, err := s.reader.resolve(ctx, ref, scratch.path)
	if err == nil {
		record, err = s.assemble(ctx, ref, found)
	}
	return record.image(), errors.Join(err, scratch.remove())
}

// explain adds what to do about a full disk, and about a file that was taken for a name in a registry.
func explain(dir, reference string, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("the disk of the image store %s is full: make room, remove images or choose another directory with --image-dir: %w",
			dir, err)
	}
	if exists(reference) && !filepath.IsAbs(reference) && !strings.HasPrefix(reference, ".") {
		return fmt.Errorf("%w (for the file of that name, write ./%s)", err, reference)
	}
	return err
}
