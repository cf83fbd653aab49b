package cron

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"trajgen/outputs/log/disk"
)

// Store is a table in a directory, which several processes may change.
type Store struct{ Dir string }

// OpenStore opens the store in a directory, which it makes.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "output"), 0o700); err != nil {
		return nil, fmt.Errorf("open the jobs: %w", err)
	}
	return &Store{Dir: dir}, nil
}

func (s *Store) path() string { return filepath.Join(s.Dir, "jobs.json") }

// Read reads the table.
func (s *Store) Read() (t Table, err error) {
	data, err := os.ReadFile(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	for i := range t.Jobs {
		j := &t.Jobs[i]
		if _, wrong := j.parse(); wrong != nil || (j.State == Scheduled) != (j.Next != nil) {
			wrong = cmp.Or(wrong, errors.New("next_run_at does not go with its state"))
			err = errors.Join(err, fmt.Errorf("job %s has no time: %w", j.ID, wrong))
		}
	}
	if err != nil {
		return t, fmt.Errorf("read the jobs in %s: %w", s.path(), err)
	}
	return t, nil
}

// Update changes the table. With an error nothing has changed; without one the change outlives a crash.
func (s *Store) Update(change func(t *Table) error) error {
	lock, err := os.OpenFile(filepath.Join(s.Dir, "jobs.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return disk.Explain(s.Dir, err)
	}
	defer lock.Close()
	for { // others hold it for the time of one change
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("lock the jobs: %w", err)
	}
	t, err := s.Read()
	if err != nil {
		return err
	}
	if err := change(&t); err != nil {
		return err
	}
	data, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	return disk.WriteFile(disk.Real{}, s.path(), disk.Bytes(append(data, '\n')))
}

// Own takes the lock of the one daemon, and returns what gives it back. The error is disk.ErrLocked where another has it.
func (s *Store) Own() (release func() error, err error) {
	return hold(filepath.Join(s.Dir, "daemon.lock"), nil)
}

// hold takes a lock. Processes that are given the file hold it, too.
func hold(path string, give func(*os.File)) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, disk.Explain(path, err)
	}
	if err := disk.Lock(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if give != nil {
		give(f)
	}
	return f.Close, nil
}

// Output is where the output of a job's last run is.
func (s *Store) Output(id string) string { return filepath.Join(s.Dir, "output", id+".txt") }
