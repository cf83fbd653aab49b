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
	rows []decoded
	size int64
	done chan struct{} // closed when they are decoded
}

const (
	batchBytes = 64 << 10
	batchRows  = 256
	// aheadBytes is how much is read and not yet asked for. A row that is larger is read alone.
	aheadBytes = 2 << 20
)

// decoded reads the rows and decodes them on all processors, ahead of whoever asks, and gives them out in their order. An
// error is the last of them.
func (s *source) decoded(ctx context.Context) iter.Seq[decoded] {
	return func(yield func(decoded) bool) {
		ctx, cancel := context.WithCancel(ctx)
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		workers := runtime.GOMAXPROCS(0)
		work, order := make(chan *batch), make(chan *batch, aheadBytes/batchBytes)
		room := semaphore.NewWeighted(aheadBytes)
		running.Go(func() {
			defer close(order)
			defer close(work)
			for b := range s.batches() {
				if room.Acquire(ctx, b.size) != nil {
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
				for b := range work {
					for i := range b.rows {
						if r := &b.rows[i]; r.err == nil {
							r.task, r.wrong = s.task(&r.row)
						}
					}
					close(b.done)
				}
			})
		}
		for b := range order {
			select {
			case <-b.done:
			case <-ctx.Done(): // there may be nobody who decodes it
				return
			}
			for _, r := range b.rows {
				if !yield(r) {
					return
				}
			}
			room.Release(b.size)
		}
	}
}

func newBatch() *batch { return &batch{rows: make([]decoded, 0, 64), done: make(chan struct{})} }

// batches reads so many rows at a time. One with an error ends with it, and is the last.
func (s *source) batches() iter.Seq[*batch] {
	return func(yield func(*batch) bool) {
		b := newBatch()
		for r, err := range s.allRows() {
			b.rows = append(b.rows, decoded{row: r, err: err})
			b.size = min(b.size+int64(len(r.text)+len(r.object)), aheadBytes)
			if len(b.rows) < batchRows && b.size < batchBytes {
				continue
			}
			if !yield(b) {
				return
			}
			b = newBatch()
		}
		if len(b.rows) > 0 {
			yield(b)
		}
	}
}
