// Package datasets reads the tasks of a run: JSON Lines, Parquet and YAML files, and the tasks that come with trajgen.
package datasets

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"trajgen/pipeline/episode"
)

// Bundled is the name under which Open finds the tasks that come with trajgen.
const Bundled = "bundled"

// Source is an opened dataset. It holds no file between calls and may be used from several goroutines; every pass
// reads the dataset anew.
type Source interface {
	// Tasks streams the tasks, always in the same order and with the same ids. The first error ends the iteration:
	// a *RowError for a broken row (unless Options.SkipBadRows), anything else for a dataset that cannot be read, is
	// empty, or for a context that ended. Of what was read, only a hash of each id stays in memory.
	Tasks(ctx context.Context) iter.Seq2[*episode.Task, error]
	// Digest is "sha256:" and the hexadecimal SHA-256 of the file's bytes as they lie on disk, compressed or not.
	Digest(ctx context.Context) (string, error)
}

// Options say how a dataset is read. The zero value reads all of it and stops at the first broken row.
type Options struct {
	Map         *Mapping // builds the fields of a foreign dataset; nil when its rows have our fields
	MaxTasks    int      // 0: all
	SkipBadRows bool     // pass broken rows to OnSkip and go on; they still count in Task.Row
	OnSkip      func(*RowError)
}

// Open finds a dataset by name (Bundled) or path. It looks at the beginning of the file but reads no rows yet.
func Open(path string, options Options) (Source, error) {
	if options.MaxTasks < 0 {
		return nil, fmt.Errorf("open dataset %s: MaxTasks is %d, want 0 (all) or more", path, options.MaxTasks)
	}
	if path == Bundled {
		return &source{name: Bundled, rows: bundledRows, digest: bundledDigest, options: options}, nil
	}
	format, err := formatOf(path)
	if err != nil {
		return nil, fmt.Errorf("open dataset %s: %w", path, err)
	}
	return &source{
		name:    path,
		rows:    func() iter.Seq2[row, error] { return format.rows(path) },
		digest:  func(ctx context.Context) (string, error) { return fileDigest(ctx, path) },
		options: options,
	}, nil
}

// RowError is a row that is not a task.
type RowError struct {
	File string
	// Line is where the row begins: the line of a text file, the number of the row (from 1) in a Parquet file.
	Line int
	// Row is the position in the dataset, from 0, as in Task.Row.
	Row int
	// Reason is everything that is wrong with the row, separated by "; ".
	Reason string

	unit string // what Line counts; "" is lines
}

func (e *RowError) Error() string {
	if e.unit != "" {
		return fmt.Sprintf("%s: %s %d: %s", e.File, e.unit, e.Line, e.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

// problems collects what is wrong with one row.
type problems []string

func (p *problems) addf(format string, arguments ...any) {
	*p = append(*p, fmt.Sprintf(format, arguments...))
}

func (p problems) String() string { return strings.Join(p, "; ") }
