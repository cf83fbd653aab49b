package datasets

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"

	"trajgen/pipeline/episode"
)

// decoded is a row and its task, or the error that ended the reading.
type decoded struct {
	row   row
	task  *episode.Task
	wrong problems
	err   error
}

// batch is rows that are decoded together, in their order.
type batch struct {
	rows []decoded
	size int64
	done chan struct{} // closed when they are decoded
}

const (
	batchBytes = 64 << 10
	batchRows  = 256
	// aheadBytes bounds the bytes that are read ahead. A larger batch is read alone.
	aheadBytes = 2 << 20
)

// decoded reads the rows ahead of the consumer, decodes them on all processors, and yields them in order. An error comes last.
func (s *source) decoded(ctx context.Context) iter.Seq[*decoded] {
	return func(yield func(*decoded) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		order := make(chan *batch, aheadBytes/batchBytes)
		room := semaphore.NewWeighted(aheadBytes)
		running.Go(func() {
			defer close(order)
			for b := range s.batches() {
				if room.Acquire(ctx, min(b.size, aheadBytes)) != nil {
					return
				}
				select {
				case order <- b:
				case <-ctx.Done():
					return
				}
				running.Go(func() { s.decodeAll(b) })
			}
		})
		for b := range order {
			<-b.done
			for i := range b.rows {
				if !yield(&b.rows[i]) {
					return
				}
			}
			room.Release(min(b.size, aheadBytes))
		}
	}
}

func (s *source) decodeAll(b *batch) {
	defer close(b.done)
	for i := range b.rows {
		if r := &b.rows[i]; r.err == nil {
			r.task, r.wrong = s.task(r.row)
		}
	}
}

// batches reads rows in batches. An error ends its batch, which is the last.
func (s *source) batches() iter.Seq[*batch] {
	return func(yield func(*batch) bool) {
		b := &batch{done: make(chan struct{})}
		for r, err := range s.allRows() {
			b.rows = append(b.rows, decoded{row: r, err: err})
			b.size += int64(len(r.text))
			if len(b.rows) < batchRows && b.size < batchBytes {
				continue
			}
			if !yield(b) {
				return
			}
			b = &batch{done: make(chan struct{})}
		}
		if len(b.rows) > 0 {
			yield(b)
		}
	}
}
