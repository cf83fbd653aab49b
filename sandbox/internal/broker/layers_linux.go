package broker

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/guest"
	"trajgen/sandbox/internal/wire"
)

// Paths of images and of snapshots' layers in the broker's root.
const (
	imagesDir = "/images"
	layersDir = "/layers"
)

// layer is what the commands of a sandbox wrote before a snapshot sealed it. It is in memory, and is freed with its last user.
type layer struct {
	path  string
	first int // which of the broker's ids is root in it
	refs  int // snapshots, and sandboxes on top of it; guarded by the lock of snapshots
}

// stack is the initial file system of a sandbox: nothing, an image, or either with layers above it, the uppermost first.
type stack struct {
	image  []string
	layers []*layer
}

// kind is what the root of a sandbox is: an image, and that of the machine.
type kind struct{ system, host bool }

// snapshot is a stack under a name.
type snapshot struct {
	stack
	kind
}

// snapshots are all that a broker has, by name. They count the references to layers.
type snapshots struct {
	layers atomic.Int64 // how many were sealed, for their names

	mu  sync.Mutex
	all map[string]*snapshot
}

// beginning finds the stack of a new sandbox, and takes a reference to its layers.
func (s *snapshots) beginning(o *Open) (stack, error) {
	if o.From == "" {
		return stack{image: o.Layers}, nil
	}
	from := s.held(o.From)
	if from == nil {
		return stack{}, fmt.Errorf("snapshot %s is gone", o.From)
	}
	o.Image, o.Host = from.system, from.host
	return from.stack, nil
}

// held finds a snapshot, and takes a reference to its layers.
func (s *snapshots) held(name string) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[name]
	if found != nil {
		found.taken()
	}
	return found
}

// taken adds a reference. The caller holds the lock of snapshots.
func (s stack) taken() stack {
	for _, l := range s.layers {
		l.refs++
	}
	return s
}

// release drops a reference, and frees layers without any.
func (s *snapshots) release(held stack) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, l := range held.layers {
		if l.refs--; l.refs > 0 {
			continue
		}
		if err := unix.Unmount(l.path, unix.MNT_DETACH); err != nil {
			errs = append(errs, fmt.Errorf("let go of a layer: %w", err))
		}
		errs = append(errs, os.Remove(l.path))
	}
	return errors.Join(errs...)
}

// has reports whether a name is taken.
func (s *snapshots) has(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[name] != nil
}

// add gives a stack a name, and takes a reference to its layers.
func (s *snapshots) add(name string, of stack, is kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[name] = &snapshot{stack: of.taken(), kind: is}
}

// forget drops a snapshot. Sandboxes on its layers keep those.
func (s *snapshots) forget(name string) error {
	s.mu.Lock()
	dropped := s.all[name]
	delete(s.all, name)
	s.mu.Unlock()
	if dropped == nil {
		return nil
	}
	return s.release(dropped.stack)
}

// snapshot seals, under a name, what a sandbox's commands wrote. It ends the guest: wake starts another one on top.
func (b *broker) snapshot(id, name string) error {
	if b.snapshots.has(name) {
		return fmt.Errorf("snapshot %s of sandbox %s: the name is taken", name, id)
	}
	return b.with(id, func(x *box) error {
		if x.upper < 0 {
			return errors.New("it has no guest")
		}
		if err := b.stop(x); err != nil {
			return err
		}
		if x.request.Folder != "" {
			name := x.request.Folder
			if x.request.Host {
				name = guest.HostRoot + "/" + name
			}
			_ = unix.Unlinkat(x.upper, name, unix.AT_REMOVEDIR) // where it was mounted: the folder is not part of the snapshot
		}
		sealed, err := newLayer(x.upper, b.snapshots.layers.Add(1), x.user)
		x.upper = -1
		if err != nil {
			return err
		}
		// One reference is for the sandbox, which goes on; it has those to the layers below already.
		x.lower.layers = append([]*layer{sealed}, x.lower.layers...)
		b.snapshots.add(name, x.lower, kind{x.request.Image, x.request.Host})
		return x.list(b.state)
	})
}

// wake starts the guest of a sandbox again after a snapshot.
func (b *broker) wake(id string) (runner int, err error) {
	err = b.with(id, func(x *box) (err error) {
		if x.upper >= 0 {
			return errors.New("it has a guest")
		}
		runner, err = b.listed(x)
		return err
	})
	return runner, err
}

// with calls do with a sandbox, which it closes when that fails.
func (b *broker) with(id string, do func(x *box) error) error {
	b.mu.Lock()
	x := b.boxes[id]
	b.mu.Unlock()
	if x == nil {
		return fmt.Errorf("sandbox %s is gone", id)
	}
	x.mu.Lock()
	err := fmt.Errorf("sandbox %s is closed", id)
	if !x.ended {
		err = do(x)
	}
	x.mu.Unlock()
	if err != nil {
		err = errors.Join(err, b.close(id))
	}
	return err
}

// newLayer makes a layer of a detached mount, which it takes over. It attaches the mount first, because the kernel cannot clone a
// detached one.
func newLayer(upper int, number int64, first int) (*layer, error) {
	defer unix.Close(upper)
	l := &layer{path: layersDir + "/" + strconv.FormatInt(number, 10), first: first, refs: 1}
	if err := os.Mkdir(l.path, 0o755); err != nil {
		return nil, err
	}
	if err := unix.MoveMount(upper, "", unix.AT_FDCWD, l.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, fmt.Errorf("keep a layer: %w", err)
	}
	return l, nil
}

// layers returns a mount of each layer of a sandbox, the uppermost first, with ids mapped for its guest.
func (b *broker) layers(x *box) (fds []int, err error) {
	paths := make([]string, 0, len(x.lower.layers)+len(x.lower.image))
	for _, l := range x.lower.layers {
		paths = append(paths, l.path)
	}
	for _, dir := range x.lower.image {
		paths = append(paths, imagesDir+"/"+dir)
	}
	if x.request.Host {
		if err := b.host(); err != nil {
			return nil, err
		}
		paths = append(paths, hostDir)
	}
	if len(paths) == 0 {
		return nil, nil
	}
	if most := wire.MaxDescriptors - 32; len(paths) > most {
		return nil, fmt.Errorf("%d layers; at most %d", len(paths), most)
	}
	users := -1
	if b.ids.kind == IDsOwn {
		// The user who owns it needs no further capability.
		err = ownedBy(x.user, func() (err error) {
			users, err = unix.Open(fmt.Sprintf("/proc/%d/ns/user", x.process.Load().Pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			return err
		})
		if err != nil {
			return nil, err
		}
		defer unix.Close(users)
	}
	for _, path := range paths {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return fds, fmt.Errorf("take layer %s: %w", path, err)
		}
		fds = append(fds, fd)
		if users < 0 {
			continue
		}
		err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users)})
		if err != nil {
			return fds, fmt.Errorf("shift the ids of layer %s (needs Linux 5.12; 6.3 for snapshots): %w", path, err)
		}
	}
	return fds, nil
}
