package export

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

// Files is a Source of what runs and exports have written: Parquet, Arrow and JSON Lines. It is what strangers may have
// written, too: damage and contradictions are errors that name the file and the row.
type Files struct {
	inputs []*input
	media  unpackedMedia
}

// input is one export.
type input struct {
	path  string
	count int  // of episodes, -1 when that is known only in the end
	rows  bool // the episodes come of rows, and lack what those do
	// episodes yields them, anew with each call.
	episodes func(context.Context) iter.Seq2[*episode.Episode, error]
	files    []*os.File
}

// open opens a file of the export, which close closes.
func (in *input) open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read episodes: %w", err)
	}
	in.files = append(in.files, f)
	return f, nil
}

func (in *input) close() error {
	var errs []error
	for _, f := range in.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// OpenFiles opens a run directory, the directory of an export to parquet, arrow or hf, or a file of an export to jsonl; or
// several, whose episodes are then read in one order.
func OpenFiles(paths ...string) (*Files, error) {
	if len(paths) == 0 {
		return nil, errors.New("no files to read (want a run directory or an export)")
	}
	f := &Files{}
	var errs []error
	for _, path := range paths {
		in := &input{path: path, count: -1}
		f.inputs = append(f.inputs, in)
		if err := in.begin(); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(append(errs, f.Close())...)
	}
	return f, nil
}

// begin opens the files, by what they are.
func (in *input) begin() error {
	path := in.path
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read episodes: %w", err)
	}
	if !info.IsDir() {
		switch suffix := filepath.Ext(path); suffix {
		case ".jsonl", ".ndjson", ".json":
			return in.beginLines()
		case ".parquet", ".arrow":
			return fmt.Errorf("read %s: the episode's tool calls are in another file (want the directory that holds both)", path)
		default:
			want := "a directory with Parquet or Arrow files, or a file .jsonl"
			if info.Mode().IsRegular() && holdsLines(path) {
				want = "the same with a name that ends in .jsonl: it holds JSON Lines"
			}
			return fmt.Errorf("read %s: unknown kind of file %q (want %s)", path, suffix, want)
		}
	}
	if _, err := os.Stat(filepath.Join(path, arrowTrajectories)); err == nil {
		return in.beginArrow()
	}
	for _, names := range [][2]string{{"trajectories", "tool_calls"}, {hfTrajectories, hfCalls}} {
		trajectories, err := filesIn(filepath.Join(path, names[0]), ".parquet")
		if err != nil {
			return err
		}
		calls, err := filesIn(filepath.Join(path, names[1]), ".parquet")
		if err != nil {
			return err
		}
		if len(trajectories) > 0 && len(calls) > 0 {
			return in.beginParquet(trajectories, calls)
		}
	}
	if _, err := os.Stat(filepath.Join(path, "journal")); err == nil {
		return fmt.Errorf("read %s: it has a journal and no Parquet files (--run reads the journal)", path)
	}
	return fmt.Errorf("read %s: it has no %s and no %s (want a run directory or an export to parquet, arrow or hf)",
		path, filepath.Join("trajectories", "*.parquet"), arrowTrajectories)
}

// holdsLines says whether a file begins as a line of JSON does.
func holdsLines(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 1)
	_, err = f.Read(head)
	return err == nil && head[0] == '{'
}

// filesIn lists what is visible in a directory that need not be there, sorted.
func filesIn(dir, suffix string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, fmt.Errorf("read episodes: %w", err)
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, suffix) && !strings.HasPrefix(name, ".") && !entry.IsDir() {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	return paths, nil
}

// Episodes yields all episodes by row, then sample, whatever file they are in. An episode that stands in two files is an
// error: which one counts is not for a reader to say.
func (f *Files) Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		var heads []*cursor
		defer func() {
			for _, c := range heads {
				c.stop()
			}
		}()
		for _, in := range f.inputs {
			c := &cursor{path: in.path}
			c.next, c.stop = iter.Pull2(in.episodes(ctx))
			heads = append(heads, c)
			if err := c.advance(); err != nil {
				yield(nil, err)
				return
			}
		}
		var last *cursor
		var before *episode.Episode
		for {
			var least *cursor
			for _, c := range heads {
				if c.ep != nil && (least == nil || datasetOrder(c.ep, least.ep) < 0) {
					least = c
				}
			}
			if least == nil {
				return
			}
			ep := least.ep
			if before != nil && datasetOrder(before, ep) == 0 {
				yield(nil, fmt.Errorf("episode %.60q stands twice, in %s and in %s (trajgen merge makes one of several runs)", ep.ID, last.path, least.path))
				return
			}
			if !yield(ep, nil) {
				return
			}
			before, last = ep, least
			if err := least.advance(); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// Len is how many episodes there are, -1 when a file does not tell.
func (f *Files) Len() (n int) {
	for _, in := range f.inputs {
		if in.count < 0 {
			return -1
		}
		n += in.count
	}
	return n
}

// Notes say what the episodes lack in comparison with those of a journal.
func (f *Files) Notes() []string {
	if slices.ContainsFunc(f.inputs, func(in *input) bool { return in.rows }) {
		return []string{"the episodes were read from rows, which lack: " + strings.Join(rows.Lost, "; ")}
	}
	return []string{}
}

// Close closes the files.
func (f *Files) Close() error {
	var errs []error
	for _, in := range f.inputs {
		errs = append(errs, in.close())
	}
	f.inputs = nil
	return errors.Join(append(errs, f.media.close())...)
}

// cursor is where one of several inputs has come to.
type cursor struct {
	path string
	next func() (*episode.Episode, error, bool)
	stop func()
	ep   *episode.Episode
}

func (c *cursor) advance() error {
	ep, err, ok := c.next()
	switch {
	case err != nil:
		return err
	case !ok:
		c.ep = nil
		return nil
	case c.ep != nil && datasetOrder(c.ep, ep) > 0:
		return fmt.Errorf("read %s: episode %.60q (row %d, sample %d) stands behind row %d, sample %d (want the rows sorted by row, sample and id)",
			c.path, ep.ID, ep.Row, ep.Key.Sample, c.ep.Row, c.ep.Key.Sample)
	}
	c.ep = ep
	return nil
}

// datasetOrder compares as a journal's reader does.
func datasetOrder(a, b *episode.Episode) int {
	return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Key.Sample, b.Key.Sample), cmp.Compare(a.ID, b.ID))
}
