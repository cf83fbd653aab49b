package corpus

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
)

// record is a key with a value.
type record struct {
	key   string
	value []byte
}

// sorter sorts records that come in any order, those with the same key in the order in which they came. They go through a file, in
// runs of as many as the memory is to hold.
type sorter struct {
	file    *os.File
	out     *bufio.Writer
	size    int64   // of the runs
	ends    []int64 // of each
	records []record
	held    int // bytes of records in memory
}

func (s *sorter) add(key string, value []byte) {
	s.records = append(s.records, record{key, value})
	s.held += len(key) + len(value) + 64
}

// spill writes what is in memory as a run.
func (s *sorter) spill() error {
	slices.SortStableFunc(s.records, func(a, b record) int { return strings.Compare(a.key, b.key) })
	var text []byte
	for _, one := range s.records {
		text = appendFields(appendFields(text[:0], one.key), one.value)
		if _, err := s.out.Write(text); err != nil {
			return err
		}
		s.size += int64(len(text))
	}
	s.ends = append(s.ends, s.size)
	clear(s.records)
	s.records, s.held = s.records[:0], 0
	return s.out.Flush()
}

// close removes the file.
func (s *sorter) close() error { return errors.Join(os.Remove(s.file.Name()), s.file.Close()) }

// merged hands on the keys of all runs in their order, each with its values, until there is an error.
func (s *sorter) merged(use func(key string, values [][]byte) error) error {
	var open merge
	from := int64(0)
	for n, to := range s.ends {
		one := &run{number: n, from: bufio.NewReaderSize(io.NewSectionReader(s.file, from, to-from), 1<<16)}
		from = to
		switch err := one.next(); {
		case err == nil:
			open = append(open, one)
		case err != io.EOF:
			return err
		}
	}
	heap.Init(&open)
	for len(open) > 0 {
		key, values := open[0].key, [][]byte(nil)
		for len(open) > 0 && open[0].key == key {
			values = append(values, open[0].value)
			switch err := open[0].next(); {
			case err == nil:
				heap.Fix(&open, 0)
			case err == io.EOF:
				heap.Pop(&open)
			default:
				return err
			}
		}
		if err := use(key, values); err != nil {
			return err
		}
	}
	return nil
}

// run is one that is being read: its next record.
type run struct {
	record
	number int
	from   *bufio.Reader
}

// next reads a record; io.EOF says that the run has no further one.
func (r *run) next() error {
	key, err := r.field()
	if err == nil {
		r.value, err = r.field()
	}
	r.key = string(key)
	return err
}

func (r *run) field() ([]byte, error) {
	size, err := binary.ReadUvarint(r.from)
	if err != nil {
		return nil, err
	}
	field := make([]byte, size)
	_, err = io.ReadFull(r.from, field)
	return field, err
}

// merge is a heap of runs by their next record.
type merge []*run

func (m merge) Len() int { return len(m) }
func (m merge) Less(i, j int) bool {
	return cmp.Or(strings.Compare(m[i].key, m[j].key), cmp.Compare(m[i].number, m[j].number)) < 0
}
func (m merge) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m *merge) Push(one any) { *m = append(*m, one.(*run)) }
func (m *merge) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
