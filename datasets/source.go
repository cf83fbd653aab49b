package datasets

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"trajgen/pipeline/episode"
)

// row is what a format reads: the text of what should be a JSON object with the place it came from, or the reason why there
// is none.
type row struct {
	file   string
	line   int
	unit   string // what line counts; "" is lines
	text   json.RawMessage
	broken string // reason; text is not set then
}

// Source is an opened dataset. It holds no file between calls and may be used from several goroutines; every pass
// reads the dataset anew.
type Source struct {
	name    string
	pieces  []piece
	named   bool // the digest covers the names of the pieces
	card    Card
	options Options
	choice  *choice

	knows atomic.Bool // there are rows with all names of the condition

	mu   sync.Mutex // guards plan
	plan *plan      // nil until it is asked for, and without an order
}

// readRow is a row with the task that it is, or with what is wrong with it.
type readRow struct {
	row
	task  *episode.Task
	given string // the id that the row itself gave the task
	wrong problems
}

// usable streams the rows that are tasks, and passes on the others.
func (s *Source) usable(ctx context.Context, skip func(row, int, string) error) iter.Seq2[readRow, error] {
	return sequence(func(yield func(readRow) bool) error {
		ids := idSet{}
		position, tasks := 0, 0
		for read, err := range s.read() {
			err = cmp.Or(err, s.ended(ctx))
			if err == nil && len(read.wrong) > 0 {
				err = skip(read.row, position, read.wrong.String())
			}
			if err != nil {
				return err
			}
			position++
			if len(read.wrong) > 0 {
				continue
			}
			tasks++
			read.given = read.task.ID
			read.task.ID, read.task.Row = ids.take(read.given), position-1
			if !yield(read) {
				return nil
			}
		}
		switch err := s.ended(ctx); {
		case err != nil:
			return err
		case position == 0:
			return fmt.Errorf("dataset %s has no rows", s.name)
		case tasks == 0:
			return fmt.Errorf("dataset %s has no usable rows: all %d are broken", s.name, position)
		}
		return nil
	})
}

// read yields the rows in their order. It decodes many at a time on all processors, while it hands on those before them and reads
// the next, as the user waits while a dataset is read before a run begins.
func (s *Source) read() iter.Seq2[readRow, error] {
	const mostRows, mostBytes = 512, 512 << 10
	return sequence(func(yield func(readRow) bool) error {
		var rows, decoding []readRow
		var workers sync.WaitGroup
		defer workers.Wait()
		size := 0
		var beside beside
		next := func() bool {
			workers.Wait()
			decoded := decoding
			decoding, rows, size = rows, nil, 0
			for part := range slices.Chunk(decoding, 64) {
				workers.Go(func() { s.decode(part, &beside) })
			}
			return !slices.ContainsFunc(decoded, func(read readRow) bool { return !yield(read) })
		}
		for _, p := range s.pieces {
			going := true
			err := p.rows(func(r row) bool {
				r.file = cmp.Or(r.file, p.path)
				rows = append(rows, readRow{row: r})
				if size += len(r.text); len(rows) == mostRows || size >= mostBytes {
					going = next()
				}
				return going
			})
			if err != nil && going && next() && next() {
				return fmt.Errorf("read dataset %s: %w", p.path, err)
			}
			if err != nil || !going {
				return nil
			}
		}
		if next() {
			next()
		}
		return nil
	})
}

func (s *Source) decode(rows []readRow, beside *beside) {
	for i := range rows {
		rows[i].task, rows[i].wrong = s.task(rows[i].row, beside)
	}
}

// ended is the error of a context that ended; nil while it has not.
func (s *Source) ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("read dataset %s: %w", s.name, context.Cause(ctx))
}

// skip passes a broken row on, or returns it as the error that it is.
func (s *Source) skip(r row, position int, reason string) error {
	bad := &RowError{File: r.file, Line: r.line, Row: position, Reason: reason, unit: r.unit}
	if !s.options.SkipBadRows {
		return bad
	}
	if s.options.OnSkip != nil {
		s.options.OnSkip(bad)
	}
	return nil
}

// passedOn ignores broken rows in a second pass, after the first has reported them.
func passedOn(row, int, string) error { return nil }

// task turns one row into a task, or says what is wrong with it.
func (s *Source) task(r row, beside *beside) (*episode.Task, problems) {
	fields, broken := r.fields()
	if broken != "" {
		return nil, problems{broken}
	}
	build := s.options.shaped
	if s.options.Map != nil {
		build = s.options.Map.apply
	}
	fields, metadata, wrong := build(fields)
	if len(wrong) > 0 {
		return nil, wrong
	}
	task, wrong := decode(fields, metadata)
	if task != nil {
		beside.scorers(&wrong, task, r.file)
	}
	return task, wrong
}

// fields are the entries of a row, or the reason why there are none.
func (r row) fields() (fields []member, broken string) {
	if r.broken == "" {
		r.broken = notObject(r.text)
	}
	if r.broken != "" {
		return nil, r.broken
	}
	fields, err := members(r.text)
	if err != nil {
		return nil, "the row is " + err.Error()
	}
	return fields, ""
}

// idSet makes ids unique. It has a 64-bit hash of each id that is taken, with the ordinal for its next duplicate. If two ids had
// the same hash, the second would get a needless "#2", and still be unique and the same on every machine.
type idSet map[uint64]uint32

func (s idSet) take(id string) string {
	first := hashOf(id)
	for candidate, hash := id, first; ; hash = hashOf(candidate) {
		if s[hash] == 0 {
			s[hash] = 2
			return candidate
		}
		candidate = id + "#" + strconv.FormatUint(uint64(s[first]), 10)
		s[first]++
	}
}

func hashOf(id string) uint64 {
	sum := sha256.Sum256([]byte(id))
	return binary.LittleEndian.Uint64(sum[:8])
}

func fileDigest(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("digest dataset: %w", err)
	}
	defer file.Close()
	sum := sha256.New()
	for {
		_, err := io.CopyN(sum, file, 8<<20)
		if err == io.EOF {
			return fmt.Sprintf("sha256:%x", sum.Sum(nil)), nil
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return "", fmt.Errorf("digest dataset %s: %w", path, err)
		}
	}
}
