package export

import (
	"errors"
	"fmt"
	"io"
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
	commit() ([]FileInfo, error)
	close() error
}

// parts is a sequence of files in a directory that take their names together. They are written under temporary names;
// commit renames them and then removes the parts of an earlier export that no new one replaced. The first one stays open,
// and locked against a second export, until the end.
type parts struct {
	dir            string
	prefix, suffix string
	files          []*file
}

func openParts(dir, prefix, suffix string) (*parts, error) {
	if err := disk.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("make directory for export: %w", disk.Explain(dir, err))
	}
	return &parts{dir: dir, prefix: prefix, suffix: suffix}, nil
}

func partName(dir, prefix string, n int, suffix string) string {
	return filepath.Join(dir, fmt.Sprintf("%s%05d%s", prefix, n, suffix))
}

// next begins a part.
func (p *parts) next() (io.Writer, error) {
	f, err := openFile(partName(p.dir, p.prefix, len(p.files), p.suffix), "")
	if err != nil {
		return nil, err
	}
	p.files = append(p.files, f)
	return f, nil
}

// finish syncs the current part.
func (p *parts) finish(rows int64) error {
	f := p.files[len(p.files)-1]
	err := f.complete(rows)
	if err == nil && len(p.files) > 1 {
		err = f.disk.Close()
	}
	return err
}

// commit gives all parts their names.
func (p *parts) commit() (done []FileInfo, err error) {
	for _, f := range p.files {
		if err := f.takeName(); err != nil {
			return nil, err
		}
		done = append(done, f.whole)
	}
	if err := disk.Sync(p.dir); err != nil {
		return nil, fmt.Errorf("commit export: %w", err)
	}
	if err := p.removeStale(); err != nil {
		return done, fmt.Errorf("remove parts of an earlier export: %w", err)
	}
	return done, nil
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
		if n, err := strconv.Atoi(middle); !ok || !ok2 || err != nil || len(middle) < 5 || n < len(p.files) {
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
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}
