package journal_test

import (
	"errors"
	"io/fs"
	"sync"
	"syscall"
	"testing"

	"trajgen/outputs/log/disk"
)

// operation is one thing that a journal did to a disk.
type operation struct {
	kind   string // create, write, truncate, sync, close, rename, remove, names; or ack, when an episode was acknowledged
	name   string // of the file or directory, or id of the episode
	to     string // rename
	offset int64
	data   []byte // write: as much as was taken
	size   int64  // truncate
	failed bool
}

// faultyDisk does what it is told, writes it down, and fails where it is asked to.
type faultyDisk struct {
	disk.Real
	// fail is asked before an operation; with an error the disk takes the first n bytes of a write, or does nothing.
	fail func(operation) (n int, err error)
	// before is called before an operation. Optional.
	before func(operation)
	// idle syncs nothing: what is not to survive a crash need not wait for the real disk.
	idle    bool
	forgets bool // writes nothing down

	mu  sync.Mutex // guards what follows
	log []operation
}

func (d *faultyDisk) do(op operation, run func() error) error {
	if d.before != nil {
		d.before(op)
	}
	var err error
	if d.fail != nil {
		var n int
		if n, err = d.fail(op); err != nil {
			op.failed, op.data = true, op.data[:min(n, len(op.data))]
		}
	}
	idle := d.idle && (op.kind == "sync" || op.kind == "names")
	if err == nil && !idle {
		err = run()
	}
	if !d.forgets {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.log = append(d.log, op)
	}
	return err
}

// acknowledged writes down that an episode is done.
func (d *faultyDisk) acknowledged(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = append(d.log, operation{kind: "ack", name: id})
}

// refused is told that a journal does not open, which may be when the disk fails.
func (d *faultyDisk) refused(t *testing.T, err error) {
	t.Helper()
	if d.fail == nil || !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
}

func (d *faultyDisk) Create(path string) (disk.File, error) {
	var f disk.File
	err := d.do(operation{kind: "create", name: path}, func() (err error) {
		f, err = d.Real.Create(path)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: f, disk: d}, nil
}

func (d *faultyDisk) Open(path string) (disk.File, error) {
	f, err := d.Real.Open(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: f, disk: d}, nil
}

func (d *faultyDisk) Rename(from, to string) error {
	return d.do(operation{kind: "rename", name: from, to: to}, func() error { return d.Real.Rename(from, to) })
}

func (d *faultyDisk) Remove(path string) error {
	err := d.Real.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return err // nothing was done
	}
	return d.do(operation{kind: "remove", name: path}, func() error { return err })
}

func (d *faultyDisk) Sync(dir string) error {
	return d.do(operation{kind: "names", name: dir}, func() error { return d.Real.Sync(dir) })
}

type faultyFile struct {
	disk.File
	disk *faultyDisk
}

func (f *faultyFile) WriteAt(p []byte, offset int64) (int, error) {
	if f.disk.forgets {
		return f.File.WriteAt(p, offset)
	}
	op := operation{kind: "write", name: f.Name(), offset: offset, data: append([]byte(nil), p...)}
	n := 0
	err := f.disk.do(op, func() (err error) {
		n, err = f.File.WriteAt(p, offset)
		return err
	})
	if err != nil && n == 0 { // a short write
		f.disk.mu.Lock()
		taken := len(f.disk.log[len(f.disk.log)-1].data)
		f.disk.mu.Unlock()
		n, _ = f.File.WriteAt(p[:taken], offset)
	}
	return n, err
}

func (f *faultyFile) Truncate(size int64) error {
	return f.disk.do(operation{kind: "truncate", name: f.Name(), size: size}, func() error { return f.File.Truncate(size) })
}

func (f *faultyFile) Sync() error {
	return f.disk.do(operation{kind: "sync", name: f.Name()}, f.File.Sync)
}
