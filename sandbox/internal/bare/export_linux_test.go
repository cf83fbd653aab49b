package bare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/box"
	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// Serve serves the socket that is descriptor 3, as Open serves its own, until the other end closes.
func Serve(layout sandbox.Layout, files int64) error {
	bare, err := guest.NewBare(3, layout.Workdir, layout.Tests, files, true, false)
	if err != nil {
		return err
	}
	if len(bare.Lacks) > 0 || !bare.Filtered {
		return fmt.Errorf("not as confined as it can be: %v", bare.Lacks)
	}
	return bare.Wait(time.Hour)
}

// Bares is a backend whose every sandbox is a bare one, in a process of its own that serves it with Serve.
type Bares struct {
	Dir string // holds directories of theirs
	// Start starts the process with a socket as descriptor 3.
	Start func(layout sandbox.Layout, files int64, socket *os.File) (*os.Process, error)
	// Owner is who the directories belong to.
	Owner int

	mu    sync.Mutex
	boxes map[*served]bool
}

func (b *Bares) Guarantees() sandbox.Guarantees { return (&backend{}).Guarantees() }

func (b *Bares) Open(ctx context.Context, spec sandbox.Spec) (sandbox.Sandbox, error) {
	spec, err := spec.Complete(sandbox.Guarantees{Network: networks})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for other := range b.boxes {
		if other.id == spec.ID {
			return nil, fmt.Errorf("sandbox %s exists", spec.ID)
		}
	}
	dir, err := os.MkdirTemp(b.Dir, spec.ID)
	if err != nil {
		return nil, err
	}
	layout := sandbox.Layout{Workdir: dir + "/workspace", Home: dir + "/home", Tmp: dir + "/tmp", Tests: dir + "/tests"}
	if spec.ReadOnly != nil {
		layout.ReadOnly = layout.Home + "/" + spec.ReadOnly.Name
	}
	for _, d := range []string{layout.Workdir, layout.Home, layout.Tmp} {
		err = errors.Join(err, os.Mkdir(d, 0o755), os.Chown(d, b.Owner, b.Owner))
	}
	err = errors.Join(err, os.Chown(dir, b.Owner, b.Owner))
	ours, theirs, pairErr := wire.Pair()
	if err = errors.Join(err, pairErr); err != nil {
		return nil, err
	}
	socket := os.NewFile(uintptr(theirs), "guest")
	defer socket.Close()
	process, err := b.Start(layout, int64(spec.Limits.Files), socket)
	if err != nil {
		return nil, err
	}
	s := &served{bares: b, id: spec.ID, dir: dir, process: process}
	if s.Box, err = box.New(s, spec, layout, ours, box.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		return nil, err
	}
	if b.boxes == nil {
		b.boxes = map[*served]bool{}
	}
	b.boxes[s] = true
	if f := spec.ReadOnly; f != nil {
		if err := f.Put(ctx, s.Files(), layout.ReadOnly); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return struct{ sandbox.Sandbox }{s.Box}, nil
}

func (b *Bares) Close() error {
	b.mu.Lock()
	open := slices.Collect(maps.Keys(b.boxes))
	b.mu.Unlock()
	var errs []error
	for _, x := range open {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

// served is a box whose guest is a process.
type served struct {
	*box.Box
	bares   *Bares
	id, dir string
	process *os.Process
}

// End implements box.Owner.
func (s *served) End() error {
	lost := s.Lost()
	state, err := s.process.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("the process that served %s: %v", s.id, state)
	}
	s.bares.mu.Lock()
	delete(s.bares.boxes, s)
	s.bares.mu.Unlock()
	return errors.Join(lost, err, os.RemoveAll(s.dir))
}

// MountProc shows the processes of the own namespace in /proc, in a mount namespace of its own.
func MountProc() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	return syscall.Mount("proc", "/proc", "proc", 0, "")
}
