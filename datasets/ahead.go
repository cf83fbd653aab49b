package datasets

import (
	"context"
	"iter"
	"runtime"
	"sync"

	"golang.org/x/sync/semaphore"

	"trajgen/pipeline/episode"
)

// decoded is a row with what became of it, or the error that ended the reading.
type decoded struct {
	row   row
	task  *episode.Task
	wrong problems
	err   error
}

// batch is rows that are decoded together, in their order.
type batch struct {
	rows  []decoded
	text  []byte         // of those rows that have no memory of their own
	tasks []episode.Task // into which they are skimmed
	size  int64
	done  chan struct{} // gets one when they are decoded
}

const (
	batchBytes = 64 << 10
	batchRows  = 256
	// aheadBytes is how much is read and not yet asked for, and briefBytes how much of what is skimmed, with which nobody is
	// busy for long. A row that is larger is read alone.
	aheadBytes = 2 << 20
	briefBytes = 512 << 10
)

// decoded reads the rows and decodes them on all processors, ahead of whoever asks, and gives them out in their order. An
// error is the last of them. In brief, rows are skimmed, and both they and their tasks are gone with the next one.
func (s *source) decoded(ctx context.Context, brief bool) iter.Seq[*decoded] {
	return func(yield func(*decoded) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		workers := runtime.GOMAXPROCS(0)
		ahead := int64(aheadBytes)
		if brief {
			ahead = briefBytes
		}
		work, order := make(chan *batch), make(chan *batch, ahead/batchBytes)
		used := make(chan *batch, ahead/batchBytes) // that nobody holds a row of any more
		room := semaphore.NewWeighted(ahead)
		running.Go(func() {
			defer close(order)
			defer close(work)
			for b := range s.batches(used) {
				if room.Acquire(ctx, min(b.size, ahead)) != nil {
					return
				}
				for _, to := range []chan *batch{order, work} {
					select {
					case to <- b:
					case <-ctx.Done():
						return
					}
				}
			}
		})
		for range workers {
			running.Go(func() {
				var d decoder
				for b := range work {
					s.decodeAll(&d, b, brief)
					b.done <- struct{}{}
				}
			})
		}
		for b := range order {
			select {
			case <-b.done:
			case <-ctx.Done(): // there may be nobody who decodes it
				return
			}
			for i := range b.rows {
				if !yield(&b.rows[i]) {
					return
				}
			}
			room.Release(min(b.size, ahead))
			if brief {
				select {
				case used <- b:
				default:
				}
			}
		}
	}
}

func (s *source) decodeAll(d *decoder, b *batch, brief bool) {
	if brief && len(b.tasks) < len(b.rows) {
		b.tasks = make([]episode.Task, cap(b.rows))
	}
	for i := range b.rows {
		r := &b.rows[i]
		if r.err != nil {
			continue
		}
		var task *episode.Task
		if brief {
			task = &b.tasks[i]
		}
		r.task, r.wrong = s.decode(d, &r.row, task)
	}
}

// batches reads so many rows at a time, into batches that were used where there are any. One with an error ends with it,
// and is the last.
func (s *source) batches(used <-chan *batch) iter.Seq[*batch] {
	return func(yield func(*batch) bool) {
		b := newBatch(used)
		for r, err := range s.allRows() {
			b.add(r, err)
			if len(b.rows) < batchRows && b.size < batchBytes {
				continue
			}
			if !yield(b) {
				return
			}
			b = newBatch(used)
		}
		if len(b.rows) > 0 {
			yield(b)
		}
	}
}

func newBatch(used <-chan *batch) *batch {
	select {
	case b := <-used:
		clear(b.rows)
		b.rows, b.text, b.size = b.rows[:0], b.text[:0], 0
		if cap(b.text) > 2*batchBytes {
			b.text = nil // one giant must not occupy its memory for the rest of the file
		}
		return b
	default:
		return &batch{rows: make([]decoded, 0, 64), done: make(chan struct{}, 1)}
	}
}

// add takes a row, whose text is gone with the next one.
func (b *batch) add(r row, err error) {
	b.size += int64(len(r.text) + len(r.object))
	if r.text != nil {
		if b.text == nil {
			b.text = make([]byte, 0, batchBytes*5/4)
		}
		at := len(b.text)
		b.text = append(b.text, r.text...) // the rows before keep what they have, should it grow
		r.text = b.text[at:len(b.text):len(b.text)]
	}
	b.rows = append(b.rows, decoded{row: r, err: err})
}
