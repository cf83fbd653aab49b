package broker

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"trajgen/sandbox/internal/wire"
)

// Where images and the layers of snapshots lie in the broker's root.
const (
	imagesDir = "/images"
	layersDir = "/layers"
)

// layer is what the commands of a sandbox wrote until it was sealed. It is memory, and gone with its last user.
type layer struct {
	path string
	refs int // of snapshots, and of sandboxes that stand on it; guarded by the broker's lock
}

// stack is what a sandbox begins with: nothing, an image, or that with layers above it, the uppermost first.
type stack struct {
	image  []string
	layers []*layer
}

// snapshot is a stack with a name.
type snapshot struct {
	stack
	system bool // the root is an image's
}

// beginning finds what a new sandbox stands on, and keeps it from going away.
func (b *broker) beginning(o *Open) (stack, error) {
	if o.From == "" {
		return stack{image: o.Layers}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.snapshots[o.From]
	if !ok {
		return stack{}, fmt.Errorf("snapshot %s is gone", o.From)
	}
	o.Image = s.system
	return s.stack.taken(), nil
}

// taken counts one more user. It is called with the broker's lock held.
func (s stack) taken() stack {
	for _, l := range s.layers {
		l.refs++
	}
	return s
}

// release counts one user less, and frees what has none.
func (b *broker) release(s stack) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, l := range s.layers {
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

// snapshot seals what a sandbox's commands wrote under a name. Its guest is ended, and another is started on top.
func (b *broker) snapshot(id, name string) (_ *box, runner int, err error) {
	b.mu.Lock()
	x, exists := b.boxes[id], b.snapshots[name] != nil
	b.mu.Unlock()
	if x == nil || exists {
		return nil, -1, fmt.Errorf("snapshot %s of sandbox %s: no such sandbox, or the name is taken", name, id)
	}
	x.mu.Lock()
	defer func() {
		x.mu.Unlock()
		if err != nil {
			err = errors.Join(err, b.close(id))
		}
	}()
	if x.ended {
		return nil, -1, fmt.Errorf("sandbox %s is closed", id)
	}
	if err := b.stop(x); err != nil {
		return nil, -1, err
	}
	sealed, err := b.seal(x.upper)
	x.upper = -1
	if err != nil {
		return nil, -1, err
	}
	// One count is the sandbox's own, which goes on; those of the layers below are its already.
	x.lower.layers = append([]*layer{sealed}, x.lower.layers...)
	b.mu.Lock()
	b.snapshots[name] = &snapshot{stack: x.lower.taken(), system: x.request.Image}
	b.mu.Unlock()
	if runner, err = b.start(x); err != nil {
		return nil, -1, err
	}
	if err := b.state.Add(x.listed, x.process.Load().Pid); err != nil {
		unix.Close(runner)
		return nil, -1, err
	}
	return x, runner, nil
}

// seal makes a layer of a detached mount, which it takes over. Other mounts can be made of a mount only when it has a
// place.
func (b *broker) seal(upper int) (*layer, error) {
	defer unix.Close(upper)
	l := &layer{path: layersDir + "/" + strconv.FormatInt(b.layerNames.Add(1), 10), refs: 1}
	if err := os.Mkdir(l.path, 0o755); err != nil {
		return nil, err
	}
	if err := unix.MoveMount(upper, "", unix.AT_FDCWD, l.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, fmt.Errorf("keep a layer: %w", err)
	}
	return l, nil
}

// forget drops a snapshot. Sandboxes that stand on its layers keep those.
func (b *broker) forget(name string) error {
	b.mu.Lock()
	s := b.snapshots[name]
	delete(b.snapshots, name)
	b.mu.Unlock()
	if s == nil {
		return nil
	}
	return b.release(s.stack)
}

// layers returns a mount of each layer that a sandbox stands on, the uppermost first, with the ids that its guest knows.
func (b *broker) layers(x *box) (fds []int, err error) {
	paths := make([]string, 0, len(x.lower.layers)+len(x.lower.image))
	for _, l := range x.lower.layers {
		paths = append(paths, l.path)
	}
	for _, dir := range x.lower.image {
		paths = append(paths, imagesDir+"/"+dir)
	}
	if len(paths) == 0 {
		return nil, nil
	}
	if most := wire.MaxDescriptors - 32; len(paths) > most {
		return nil, fmt.Errorf("%d layers; at most %d", len(paths), most)
	}
	users := -1
	if b.ids == IDsOwn {
		// Its owner needs no further capability for that.
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
