//go:build linux

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// ServeBare serves the socket that is descriptor 3, as OpenBare serves its own, until the other end closes.
func ServeBare(layout Layout, files int64) error {
	bare, err := guest.NewBare(3, layout.Workdir, layout.Tests, files, true, false)
	if err != nil {
		return err
	}
	if len(bare.Lacks) > 0 || !bare.Filtered {
		return fmt.Errorf("not as confined as it can be: %v", bare.Lacks)
	}
	return bare.Wait(time.Hour)
}

// Bares is a backend whose every sandbox is a bare one, in a process of its own that serves it with ServeBare.
type Bares struct {
	Dir string // holds directories of theirs
	// Start starts the process with a socket as descriptor 3.
	Start func(layout Layout, files int64, socket *os.File) (*os.Process, error)
	// Owner is who the directories belong to.
	Owner int

	mu    sync.Mutex
	boxes map[*box]*os.Process
}

func (b *Bares) Guarantees() Guarantees { return (&bare{}).Guarantees() }

func (b *Bares) Open(ctx context.Context, spec Spec) (Sandbox, error) {
	spec, err := spec.complete(bareNetworks, false)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for other := range b.boxes {
		if other.spec.ID == spec.ID {
			return nil, fmt.Errorf("sandbox %s exists", spec.ID)
		}
	}
	dir, err := os.MkdirTemp(b.Dir, spec.ID)
	if err != nil {
		return nil, err
	}
	layout := Layout{Workdir: dir + "/workspace", Home: dir + "/home", Tmp: dir + "/tmp", Tests: dir + "/tests"}
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
	x, err := newBox(b, nil, spec, layout, ours)
	if err != nil {
		return nil, err
	}
	if b.boxes == nil {
		b.boxes = map[*box]*os.Process{}
	}
	b.boxes[x] = process
	return struct{ Sandbox }{x}, nil
}

func (b *Bares) Close() error {
	b.mu.Lock()
	var open []*box
	for x := range b.boxes {
		open = append(open, x)
	}
	b.mu.Unlock()
	var errs []error
	for _, x := range open {
		errs = append(errs, x.end())
	}
	return errors.Join(errs...)
}

func (b *Bares) forget(*box) {}

func (b *Bares) end(x *box) error {
	b.mu.Lock()
	process := b.boxes[x]
	b.mu.Unlock()
	x.lost()
	state, err := process.Wait()
	if err == nil && !state.Success() {
		err = fmt.Errorf("the process that served %s: %v", x.spec.ID, state)
	}
	b.mu.Lock()
	delete(b.boxes, x)
	b.mu.Unlock()
	return errors.Join(err, os.RemoveAll(filepath.Dir(x.layout.Workdir)))
}

func (b *Bares) patience() time.Duration { return defaultPatience }

func (b *Bares) log() *slog.Logger { return slog.New(slog.DiscardHandler) }

// MountProc shows the processes of the own namespace in /proc, in a mount namespace of its own.
func MountProc() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	return syscall.Mount("proc", "/proc", "proc", 0, "")
}
