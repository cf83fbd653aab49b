package export

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"trajgen/outputs/log/disk"
)

// partFiles is where the part files of a table go, one after another.
type partFiles interface {
	next() (io.Writer, error)
	finish(rows int64) error
	explain(err error) error // says which part an error of writing is about
	commit() ([]FileInfo, error)
	close() error
}

// parts is a sequence of files in a directory that take their names together. They are written under temporary names;
// commit renames them and then removes the parts of an earlier export that no new one replaced.
type parts struct {
	dir            string
	prefix, suffix string
	lock           *os.File // the temporary file of the first part, locked until the end against a second export
	current        *os.File
	done           []FileInfo // under their final names
	begun          int
	committed      bool
}

func openParts(dir, prefix, suffix string) (*parts, error) {
	if err := disk.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("make directory for export: %w", disk.Explain(dir, err))
	}
	return &parts{dir: dir, prefix: prefix, suffix: suffix}, nil
}

func (p *parts) name(n int) string { return partName(p.dir, p.prefix, n, p.suffix) }

func partName(dir, prefix string, n int, suffix string) string {
	return filepath.Join(dir, fmt.Sprintf("%s%05d%s", prefix, n, suffix))
}

func (p *parts) temporary(n int) string {
	return filepath.Join(p.dir, fmt.Sprintf(".%s%05d%s.tmp", p.prefix, n, p.suffix))
}

// next begins a part.
func (p *parts) next() (io.Writer, error) {
	path := p.temporary(p.begun)
	f, err := openTemporary(path, p.begun == 0)
	if err != nil {
		return nil, err
	}
	if p.begun == 0 {
		p.lock = f
	}
	p.current = f
	p.begun++
	return f, nil
}

// openTemporary opens a file for writing anew. With lock it refuses one that another process is writing.
func openTemporary(path string, lock bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("begin export file: %w", disk.Explain(path, err))
	}
	if lock {
		if err := disk.Lock(f); err != nil {
			f.Close()
			if errors.Is(err, disk.ErrLocked) {
				return nil, fmt.Errorf("%w: another export is writing %s", disk.ErrLocked, path)
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// The other export may have given this very file its final name between our open and our lock.
		mine, err1 := f.Stat()
		named, err2 := os.Stat(path)
		if err1 != nil || err2 != nil || !os.SameFile(mine, named) {
			f.Close()
			return nil, fmt.Errorf("%w: another export just wrote %s", disk.ErrLocked, path)
		}
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, fmt.Errorf("begin export file: %w", disk.Explain(path, err))
	}
	return f, nil
}

// explain says which file an error of writing it is about.
func (p *parts) explain(err error) error {
	return fmt.Errorf("write %s: %w", p.name(p.begun-1), disk.Explain(p.dir, err))
}

// finish syncs the current part.
func (p *parts) finish(rows int64) error {
	f := p.current
	p.current = nil
	info, err := f.Stat()
	if err == nil {
		err = f.Sync()
	}
	if f != p.lock {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return p.explain(err)
	}
	p.done = append(p.done, FileInfo{Path: p.name(p.begun - 1), Rows: rows, Bytes: info.Size()})
	return nil
}

// commit gives all parts their names.
func (p *parts) commit() ([]FileInfo, error) {
	for n := range p.done {
		if err := os.Rename(p.temporary(n), p.name(n)); err != nil {
			return nil, fmt.Errorf("commit export: %w", disk.Explain(p.dir, err))
		}
	}
	p.committed = true
	if err := disk.Sync(p.dir); err != nil {
		return nil, fmt.Errorf("commit export: %w", err)
	}
	if err := p.removeStale(); err != nil {
		return p.done, fmt.Errorf("remove parts of an earlier export: %w", err)
	}
	return p.done, nil
}

// removeStale removes the parts and temporary files that an earlier export left behind the last of this one.
func (p *parts) removeStale() error {
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return err
	}
	removed := false
	for _, entry := range entries {
		name := entry.Name()
		if temporary, ok := strings.CutSuffix(name, ".tmp"); ok {
			name = strings.TrimPrefix(temporary, ".")
		}
		middle, ok := strings.CutPrefix(name, p.prefix)
		middle, ok2 := strings.CutSuffix(middle, p.suffix)
		if n, err := strconv.Atoi(middle); !ok || !ok2 || err != nil || len(middle) < 5 || n < p.begun {
			continue
		}
		if err := os.Remove(filepath.Join(p.dir, entry.Name())); err != nil {
			return err
		}
		removed = true
	}
	if removed {
		return disk.Sync(p.dir)
	}
	return nil
}

// close closes what is open and removes what was not committed.
func (p *parts) close() error {
	var err error
	if p.current != nil && p.current != p.lock {
		err = p.current.Close()
	}
	if !p.committed {
		for n := range p.begun {
			if e := os.Remove(p.temporary(n)); !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
	}
	if p.lock != nil {
		err = errors.Join(err, p.lock.Close())
	}
	if err != nil {
		return fmt.Errorf("close %s: %w", p.dir, err)
	}
	return nil
}
