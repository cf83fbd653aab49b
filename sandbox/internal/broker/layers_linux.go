package broker

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

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
	refs  int // snapshots, and sandboxes on top of it; guarded by the broker's lock
}

// stack is the initial file system of a sandbox: nothing, an image, or either with layers above it, the uppermost first.
type stack struct {
	image  []string
	layers []*layer
}

// snapshot is a stack under a name.
type snapshot struct {
	stack
	system bool // the root is an image's
}

// beginning finds the stack of a new sandbox, and takes a reference to its layers.
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

// taken adds a reference. The caller holds the broker's lock.
func (s stack) taken() stack {
	for _, l := range s.layers {
		l.refs++
	}
	return s
}

// release drops a reference, and frees layers without any.
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

// snapshot seals, under a name, what a sandbox's commands wrote. It ends the guest and starts another one on top.
func (b *broker) snapshot(id, name string) (runner int, err error) {
	b.mu.Lock()
	x, exists := b.boxes[id], b.snapshots[name] != nil
	b.mu.Unlock()
	if x == nil || exists {
		return -1, fmt.Errorf("snapshot %s of sandbox %s: no such sandbox, or the name is taken", name, id)
	}
	x.mu.Lock()
	defer func() {
		x.mu.Unlock()
		if err != nil {
			err = errors.Join(err, b.close(id))
		}
	}()
	if x.ended {
		return -1, fmt.Errorf("sandbox %s is closed", id)
	}
	if err := b.stop(x); err != nil {
		return -1, err
	}
	if x.request.Folder != "" {
		_ = unix.Unlinkat(x.upper, x.request.Folder, unix.AT_REMOVEDIR) // where it was mounted: the folder is not part of the snapshot
	}
	sealed, err := seal(x.upper, b.layerNames.Add(1), x.user)
	x.upper = -1
	if err != nil {
		return -1, err
	}
	// One reference is for the sandbox, which goes on; it has those to the layers below already.
	x.lower.layers = append([]*layer{sealed}, x.lower.layers...)
	b.mu.Lock()
	b.snapshots[name] = &snapshot{stack: x.lower.taken(), system: x.request.Image}
	b.mu.Unlock()
	return b.listed(x)
}

// seal makes a layer of a detached mount, which it takes over. It attaches the mount first, because the kernel cannot clone a
// detached one.
func seal(upper int, number int64, first int) (*layer, error) {
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

// forget drops a snapshot. Sandboxes on its layers keep those.
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

// layers returns a mount of each layer of a sandbox, the uppermost first, with ids mapped for its guest.
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
