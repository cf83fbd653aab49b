package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Lock is the content of a lock file.
type Lock struct {
	Version int                   `json:"version"`
	Servers map[string]*Described `json:"servers"`
}

const lockVersion = 1

// readLock reads a lock file.
func readLock(path string) (*Lock, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("mcp.lock: there is no %s: trajgen mcp lock writes it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("mcp.lock: %w", err)
	}
	lock := &Lock{}
	if err := json.Unmarshal(data, lock); err != nil {
		return nil, fmt.Errorf("mcp.lock: %s: %w", path, err)
	}
	if lock.Version != lockVersion {
		return nil, fmt.Errorf("mcp.lock: %s is of version %d; this is version %d", path, lock.Version, lockVersion)
	}
	return lock, nil
}

// check says how servers differ from the lock.
func (l *Lock) check(servers []*server) error {
	var errs []error
	for _, s := range servers {
		locked := l.Servers[s.name]
		if locked == nil {
			errs = append(errs, fmt.Errorf("mcp server %s is not in the lock file", s.name))
			continue
		}
		if lines := locked.differs(s.described); len(lines) > 0 {
			errs = append(errs, fmt.Errorf("mcp server %s differs from the lock file:\n  %s", s.name, strings.Join(lines, "\n  ")))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w\nread what has changed, and write the lock file anew with trajgen mcp lock", err)
	}
	return nil
}

// WriteLock writes what the servers say of themselves.
func (s *Set) WriteLock(path string) error {
	lock := Lock{Version: lockVersion, Servers: map[string]*Described{}}
	for _, server := range s.servers {
		lock.Servers[server.name] = server.described
	}
	var text bytes.Buffer
	if err := json.Indent(&text, encoded(lock), "", "  "); err != nil { // its schemas as they are, with each <
		return err
	}
	text.WriteByte('\n')
	return os.WriteFile(path, text.Bytes(), 0o644)
}
