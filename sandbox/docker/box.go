package docker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"trajgen/sandbox"
	"trajgen/sandbox/carry"
	"trajgen/sandbox/internal/probe"
	"trajgen/sandbox/relay"
)

// box is the sandbox of a container: it is served by the agent, and ends with the container.
type box struct {
	sandbox.Sandbox
	backend   *backend
	id        string
	container string
	image     *image
	relay     *relay.Client
	room      *room // nil where the engine itself limits the disk
	network   sandbox.Network
	beside    *box // whose network it has; nil is its own
	services  []*service
	names     []sandbox.FileWrite // of one with services: the nameFiles

	closing sync.Once
	err     error
}

// Close ends all that runs in the container and in those of its services, which go first: podman removes no container whose network
// others have.
func (x *box) Close() error {
	x.closing.Do(func() {
		var errs []error
		for _, s := range slices.Backward(x.services) {
			errs = append(errs, s.close())
		}
		x.err = bounded(errors.Join(errors.Join(errs...), x.discard(), x.backend.state.Remove(x.id)))
		x.backend.release(x.id)
	})
	return x.err
}

// discard ends the container. The engine removes its files, of which there may be very many, in the background.
func (x *box) discard() error {
	if x.ended() && x.backend.later(x) {
		return nil
	}
	return x.remove()
}

// endTime is how long an agent may take to end.
const endTime = 15 * time.Second

// ended lets the agent kill all processes, and remove files that an engine could not. It reports whether that is done: then the
// container ends by itself.
func (x *box) ended() bool {
	if x.relay == nil {
		return false
	}
	x.room.end()
	closed := make(chan error, 1)
	go func() { closed <- x.relay.Close() }()
	select {
	case err := <-closed:
		return err == nil
	case <-time.After(endTime):
		return false // it ends with the container
	}
}

// remove removes the container.
func (x *box) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := remove(ctx, x.backend.engine, x.container)
	x.backend.discard()
	return err
}

// mostRemovals is how many containers are removed in the background at once; Close of one more waits for its removal.
const mostRemovals = 16

// later removes a container in the background, unless too many are being removed. Close of the backend retries failed removals.
func (b *backend) later(x *box) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.removals >= mostRemovals || b.closed {
		return false
	}
	b.removals++
	b.removing.Go(func() {
		if err := x.remove(); err != nil {
			b.logger.Warn("remove a container", "sandbox", x.id, "err", bounded(err))
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.removals--
	})
	return true
}

// snapshot is an image that was made of a container.
type snapshot struct {
	backend *backend
	image   *image
	workdir string
	beside  *box // whose network and services forks have; nil is none
	closed  atomic.Bool
}

// besideOf returns the box whose network the sandbox of a spec has: the one with the services of its snapshot. nil is none.
func besideOf(spec sandbox.Spec) (*box, error) {
	s, ok := spec.From.(*snapshot)
	if !ok || s.beside == nil {
		return nil, nil
	}
	if spec.Network != s.beside.network {
		return nil, fmt.Errorf("network %q: a fork of a sandbox with services has its network, which is %q", spec.Network, s.beside.network)
	}
	return s.beside, nil
}

// Snapshot makes an image of the container, which is paused meanwhile. Unlike with native, it takes longer the more was written
// since the container began.
func (x *box) Snapshot(ctx context.Context) (sandbox.Snapshot, error) {
	s, err := x.snapshot(ctx)
	if err != nil {
		return nil, bounded(fmt.Errorf("snapshot of sandbox %s: %w", x.id, err))
	}
	return s, nil
}

func (x *box) snapshot(ctx context.Context) (*snapshot, error) {
	facts, err := probe.Look(ctx, x)
	if err != nil {
		return nil, err
	}
	if facts.Processes > 2 { // the agent and the probe
		return nil, sandbox.ErrBusy
	}
	shared, err := x.packShared(ctx)
	if err != nil {
		return nil, err
	}
	b := x.backend
	// A tag keeps a cleanup of unused images from removing it.
	reference := "trajgen-snapshot-" + b.label + ":" + strconv.Itoa(b.number())
	made, err := b.engine.ContainerCommit(ctx, x.container, client.ContainerCommitOptions{
		Reference: reference, Comment: "snapshot of sandbox " + x.id, Changes: []string{"LABEL " + labelInstance + "=" + b.label},
		Config: &container.Config{}, // podman requires one
	})
	if err != nil && errdefs.IsNotFound(err) {
		err = fmt.Errorf("%w: %w", sandbox.ErrGone, err)
	}
	if shared != "" {
		err = errors.Join(err, x.Files().Remove(ctx, shared))
	}
	if err != nil {
		return nil, err
	}
	forked := *x.image
	forked.id, forked.reference, forked.shared = made.ID, reference, shared
	beside := x.beside
	if len(x.services) > 0 {
		beside = x
	}
	return &snapshot{backend: b, image: &forked, workdir: x.Layout().Workdir, beside: beside}, nil
}

// sharedDir is in memory, so that images do not include it.
const sharedDir = "/dev/shm"

// packShared archives the files of sharedDir where the snapshot includes them, and returns the archive's path, or "" without
// files.
func (x *box) packShared(ctx context.Context) (string, error) {
	entries, err := x.Files().List(ctx, sharedDir)
	if err != nil || len(entries) == 0 {
		return "", err
	}
	archive := x.Layout().Tmp + "/.trajgen-shared.tar"
	return archive, carry.Pack(ctx, x, sharedDir, archive)
}

// Close removes the image, later if containers or other images use it.
func (s *snapshot) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		s.backend.mu.Lock()
		s.backend.unused[s.image.id] = true
		s.backend.mu.Unlock()
		s.backend.discard()
	}
	return nil
}

// discard removes the images of closed snapshots that are no longer used. What it cannot remove now, a later call removes, or
// Close of the backend.
func (b *backend) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	for removed := true; removed; {
		removed = false
		b.mu.Lock()
		var ids []string
		for id := range b.unused {
			ids = append(ids, id)
		}
		b.mu.Unlock()
		for _, id := range ids {
			_, err := b.engine.ImageRemove(ctx, id, client.ImageRemoveOptions{})
			if err != nil && !errdefs.IsNotFound(err) {
				continue
			}
			removed = true
			b.mu.Lock()
			delete(b.unused, id)
			b.mu.Unlock()
		}
	}
}
