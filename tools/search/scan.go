package search

import (
	"errors"
	"runtime"
	"sync"
)

// batch is a list of files for one worker, which closes done when it has counted in all.
type batch struct {
	files  []entry
	counts []int
	errs   map[int]error
	done   chan struct{}
}

// batchSize keeps communication with the workers low; batchesAhead bounds what waits for a slow file.
const (
	batchSize    = 32
	batchesAhead = 64
)

// scan counts the matching lines of each file, up to most, and reports them in the order of the walk. Workers count in
// parallel; this goroutine calls report.
func scan(w *walker, path string, p *pattern, most int, report func(e entry, n int, err error) error) error {
	ordered, work := make(chan *batch, batchesAhead), make(chan *batch, batchesAhead)
	stop := make(chan struct{})
	var all sync.WaitGroup
	var walked error
	all.Go(func() {
		defer close(ordered)
		defer close(work)
		current := &batch{done: make(chan struct{})}
		send := func() bool {
			select {
			case ordered <- current:
			case <-stop:
				return false
			}
			work <- current // has as much room
			current = &batch{done: make(chan struct{})}
			return true
		}
		w.visit = func(e entry) bool {
			current.files = append(current.files, e)
			return len(current.files) < batchSize || send()
		}
		walked = w.walk(path)
		send()
	})
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			var buffer []byte
			for b := range work {
				b.count(p, &buffer, most)
				if cap(buffer) > 1<<20 {
					buffer = nil
				}
			}
		})
	}
	err := collect(ordered, report)
	close(stop)
	for range ordered { // until the walk has stopped
	}
	all.Wait()
	return errors.Join(walked, err)
}

func collect(ordered <-chan *batch, report func(e entry, n int, err error) error) error {
	for b := range ordered {
		<-b.done
		for i, e := range b.files {
			if err := report(e, b.counts[i], b.errs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *batch) count(p *pattern, buffer *[]byte, most int) {
	defer close(b.done)
	b.counts = make([]int, len(b.files))
	for i, e := range b.files {
		err := chunks(e.name, buffer, func(text []byte) bool {
			b.counts[i] += p.count(text, most-b.counts[i])
			return b.counts[i] < most
		})
		if err != nil {
			if b.errs == nil {
				b.errs = map[int]error{}
			}
			b.counts[i], b.errs[i] = 0, err
		}
	}
}
