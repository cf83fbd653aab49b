// Package state keeps on disk what must survive a crash: which instances hold which sandboxes and cgroups. An instance is alive
// as long as a process holds its lock; the kernel releases the lock when the process dies.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	lockName   = "lock"
	ownerName  = "owner.json"
	recordTail = ".sandbox.json"
	newHead    = ".new-" // no sandbox has such a name
	guardName  = ".lock"
)

// Owner describes an instance.
type Owner struct {
	Backend string   `json:"backend"`
	PID     int      `json:"pid"`
	Cgroups []string `json:"cgroups,omitempty"`
	// Settings are what the backend needs to remove what is left elsewhere, without secrets.
	Settings map[string]string `json:"settings,omitempty"`
}

// Record describes an open sandbox.
type Record struct {
	ID      string    `json:"id"`
	Backend string    `json:"backend"`
	PID     int       `json:"pid"`
	Owner   int       `json:"owner"`
	Started time.Time `json:"started"`
}

// Instance is the directory of one process that holds sandboxes. It works through descriptors, so that the process may change
// its root directory.
type Instance struct {
	Name  string
	Dir   string
	all   *os.Root
	root  *os.Root
	lock  *os.File
	owner Owner
}

// Create makes an instance below dir.
func Create(dir string, owner Owner) (*Instance, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	// A sweep would take an instance for dead that exists and is not locked yet.
	guard, err := lock(filepath.Join(dir, guardName), os.O_CREATE, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	path, err := os.MkdirTemp(dir, owner.Backend+"-*")
	if err != nil {
		return nil, err
	}
	i := &Instance{Name: filepath.Base(path), Dir: path, owner: owner}
	if i.lock, err = lock(filepath.Join(path, lockName), os.O_CREATE, syscall.LOCK_EX); err != nil {
		return nil, err
	}
	if i.all, err = os.OpenRoot(dir); err != nil {
		return nil, err
	}
	if i.root, err = os.OpenRoot(path); err != nil {
		return nil, err
	}
	return i, i.SetCgroups(nil)
}

// SetCgroups records the directories that a sweep has to remove, before they are made: a sweep ignores those that do not exist.
func (i *Instance) SetCgroups(paths []string) error {
	i.owner.Cgroups = paths
	content, err := json.Marshal(i.owner)
	if err != nil {
		return err
	}
	return i.replace(ownerName+".new", ownerName, content)
}

// Add records a sandbox.
func (i *Instance) Add(id string, pid int) error {
	content, err := json.Marshal(Record{ID: id, PID: pid})
	if err != nil {
		return err
	}
	return i.replace(newHead+id, id+recordTail, content)
}

// replace replaces a file by a rename, so that no reader finds half of it.
func (i *Instance) replace(temporary, name string, content []byte) error {
	if err := i.root.WriteFile(temporary, content, 0o600); err != nil {
		return err
	}
	return i.root.Rename(temporary, name)
}

// Remove deletes the record of a sandbox.
func (i *Instance) Remove(id string) error {
	if err := i.root.Remove(id + recordTail); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Close deletes the instance.
func (i *Instance) Close() error {
	err := i.all.RemoveAll(i.Name)
	_ = i.root.Close()
	_ = i.all.Close()
	_ = i.lock.Close()
	return err
}

// List returns the sandboxes of living instances.
func List(dir string) ([]Record, error) {
	var records []Record
	err := each(dir, func(path string) error {
		switch file, err := lock(filepath.Join(path, lockName), 0, syscall.LOCK_SH|syscall.LOCK_NB); {
		case err == nil: // its owner is dead
			return file.Close()
		case errors.Is(err, fs.ErrNotExist): // it is being deleted
			return nil
		}
		owner := readOwner(path)
		files, err := filepath.Glob(filepath.Join(path, "*"+recordTail))
		if err != nil {
			return err
		}
		for _, name := range files {
			var r Record
			content, err := os.ReadFile(name)
			if err != nil || json.Unmarshal(content, &r) != nil {
				continue // closed meanwhile
			}
			if info, err := os.Stat(name); err == nil {
				r.Started = info.ModTime()
			}
			r.Backend, r.Owner = owner.Backend, owner.PID
			records = append(records, r)
		}
		return nil
	})
	return records, err
}

// Names returns the ids that are recorded in an instance's directory, sorted.
func Names(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), recordTail); ok {
			names = append(names, name)
		}
	}
	return names, err
}

// Sweep calls remove for each dead instance and deletes its directory. It returns what it deleted.
func Sweep(dir string, remove func(path string, owner Owner) error) (swept []string, err error) {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	guard, err := lock(filepath.Join(dir, guardName), os.O_CREATE, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer guard.Close()
	err = each(dir, func(path string) error {
		file, err := lock(filepath.Join(path, lockName), 0, syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return nil
		case err != nil && !errors.Is(err, fs.ErrNotExist): // no lock: its owner died, or is about to end, while it deleted the directory
			return err
		case err == nil:
			defer file.Close()
		}
		if err := remove(path, readOwner(path)); err != nil {
			return err
		}
		swept = append(swept, path)
		return os.RemoveAll(path)
	})
	return swept, err
}

func each(dir string, visit func(path string) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, entry := range entries {
		if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
			errs = append(errs, visit(filepath.Join(dir, entry.Name())))
		}
	}
	return errors.Join(errs...)
}

func readOwner(path string) Owner {
	var owner Owner
	if content, err := os.ReadFile(filepath.Join(path, ownerName)); err == nil {
		_ = json.Unmarshal(content, &owner)
	}
	return owner
}

// lock opens and locks a file. Readers of an instance must not create it: the directory may be about to be deleted, which a new
// file would prevent.
func lock(name string, create, how int) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|create, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), how); err != nil {
		file.Close()
		return nil, &os.PathError{Op: "lock", Path: name, Err: err}
	}
	return file, nil
}

// RemoveTree deletes directories, also those that commands made unwritable.
func RemoveTree(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
