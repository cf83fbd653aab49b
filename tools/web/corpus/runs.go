package corpus

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
)

// spool keeps on disk what is written before its place in the index is known. It has no name once it is open; one that a crash
// left in between is taken by the next build.
type spool struct {
	file   *os.File
	buffer *bufio.Writer
	size   int64
}

func newSpool(name string) (*spool, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(name); err != nil {
		file.Close()
		return nil, err
	}
	return &spool{file: file, buffer: bufio.NewWriterSize(file, 1<<16)}, nil
}

// Write makes it an io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	n, err := s.buffer.Write(p)
	s.size += int64(n)
	return n, err
}

// part reads back what lies between two positions. All of it must be flushed.
func (s *spool) part(from, to int64) *bufio.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(s.file, from, to-from), 1<<16)
}

// runs are sequences of records, each in the order of its keys.
type runs struct {
	*spool
	ends []int64
	head []byte
}

// record is a key with what belongs to it.
type record struct {
	key   string
	value []byte
}

// put adds a record to the run, whose keys must come in order.
func (r *runs) put(key string, value ...[]byte) error {
	size := 0
	for _, part := range value {
		size += len(part)
	}
	r.head = append(binary.AppendUvarint(r.head[:0], uint64(len(key))), key...)
	if _, err := r.Write(binary.AppendUvarint(r.head, uint64(size))); err != nil {
		return err
	}
	for _, part := range value {
		if _, err := r.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// end ends a run; the next record begins another.
func (r *runs) end() { r.ends = append(r.ends, r.size) }

// merged yields the records of all runs in the order of their keys, those with the same key in the order of the runs. A value is
// good until the next one.
func (r *runs) merged() iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		if err := r.buffer.Flush(); err != nil {
			yield(record{}, err)
			return
		}
		var open merge
		from := int64(0)
		for n, to := range r.ends {
			one := &run{from: r.part(from, to), number: n}
			from = to
			switch err := one.next(); {
			case err == nil:
				open = append(open, one)
			case err != io.EOF:
				yield(record{}, err)
				return
			}
		}
		heap.Init(&open)
		for len(open) > 0 {
			if !yield(open[0].record, nil) {
				return
			}
			switch err := open[0].next(); {
			case err == nil:
				heap.Fix(&open, 0)
			case err == io.EOF:
				heap.Pop(&open)
			default:
				yield(record{}, err)
				return
			}
		}
	}
}

// run is one that is being read.
type run struct {
	record
	from   *bufio.Reader
	number int
	key    []byte
}

// next reads a record; io.EOF says that the run has no further one.
func (r *run) next() error {
	size, err := binary.ReadUvarint(r.from)
	if err != nil {
		return err
	}
	if r.key, err = r.take(r.key, size); err != nil {
		return err
	}
	if size, err = binary.ReadUvarint(r.from); err == nil {
		r.value, err = r.take(r.value, size)
	}
	r.record.key = string(r.key)
	return err
}

func (r *run) take(into []byte, size uint64) ([]byte, error) {
	into = slices.Grow(into[:0], int(size))[:size]
	_, err := io.ReadFull(r.from, into)
	return into, err
}

// merge is a heap of runs by their next record.
type merge []*run

func (m merge) Len() int { return len(m) }
func (m merge) Less(i, j int) bool {
	return cmp.Or(strings.Compare(m[i].record.key, m[j].record.key), cmp.Compare(m[i].number, m[j].number)) < 0
}
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(one any) { *m = append(*m, one.(*run)) }
func (m *merge) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

// sorter sorts records that come in any order, those with the same key in the order in which they came.
type sorter struct {
	runs
	records []record
	held    int // bytes in memory
	limit   int
}

func (s *sorter) add(key string, value []byte) error {
	s.records = append(s.records, record{key, value})
	if s.held += len(key) + len(value) + 64; s.held < s.limit {
		return nil
	}
	return s.spill()
}

// spill writes what is in memory as a run.
func (s *sorter) spill() error {
	slices.SortStableFunc(s.records, func(a, b record) int { return strings.Compare(a.key, b.key) })
	for _, one := range s.records {
		if err := s.put(one.key, one.value); err != nil {
			return err
		}
	}
	s.end()
	clear(s.records)
	s.records, s.held = s.records[:0], 0
	return nil
}
