package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"trajgen/outputs/journal"
	"trajgen/outputs/log/disk"
	"trajgen/pipeline/model/record"
)

// OutDir is the run directory.
func (f *File) OutDir() string {
	if f.Out != "" {
		return f.Out
	}
	return filepath.Join("runs", f.Name)
}

// JournalDir is where a run directory keeps its journal.
func JournalDir(run string) string { return filepath.Join(run, "journal") }

// fresh refuses a directory that is not empty, except for the files of a run that died before it began.
func fresh(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open run directory: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "journal" && name != record.TapeName && name != "log.jsonl" && !strings.HasPrefix(name, disk.Temporary) {
			return fmt.Errorf("%s is not empty: --resume goes on with a run, another --out starts one", dir)
		}
	}
	return nil
}

// OpenFinished opens a run directory for reading.
func OpenFinished(dir string) (Manifest, *journal.Reader, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return m, nil, err
	}
	reader, err := journal.OpenReader(JournalDir(dir))
	return m, reader, err
}
