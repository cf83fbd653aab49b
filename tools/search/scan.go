package search

import "runtime"

// batch is a list of files whose matches one goroutine counts, until it closes done.
type batch struct {
	files  []entry
	counts []int
	errs   []error
	done   chan struct{}
}

// batchSize keeps communication low; batchesAhead bounds what waits for a slow file.
const (
	batchSize    = 32
	batchesAhead = 64
)

// scan counts the matching lines of each file, up to most, and reports them in the order of the walk. Goroutines count in
// parallel; this one calls report.
func scan(w *walker, path string, p *pattern, most int, report func(e entry, n int, err error)) error {
	ordered := make(chan *batch, batchesAhead)
	var walked error
	go func() {
		defer close(ordered)
		buffers := make(chan []byte, runtime.GOMAXPROCS(0))
		for range cap(buffers) {
			buffers <- nil
		}
		current := &batch{done: make(chan struct{})}
		send := func() {
			b := current
			ordered <- b
			buffer := <-buffers
			go func() { buffers <- b.count(p, buffer, most) }()
			current = &batch{done: make(chan struct{})}
		}
		w.visit = func(e entry) {
			if current.files = append(current.files, e); len(current.files) == batchSize {
				send()
			}
		}
		walked = w.walk(path)
		send()
	}()
	for b := range ordered {
		<-b.done
		for i, e := range b.files {
			report(e, b.counts[i], b.errs[i])
		}
	}
	return walked
}

// count returns a buffer for the next batch.
func (b *batch) count(p *pattern, buffer []byte, most int) []byte {
	defer close(b.done)
	b.counts, b.errs = make([]int, len(b.files)), make([]error, len(b.files))
	for i, e := range b.files {
		b.errs[i] = chunks(e.name, &buffer, func(text []byte) bool {
			b.counts[i] += p.count(text, most-b.counts[i])
			return b.counts[i] < most
		})
		if b.errs[i] != nil {
			b.counts[i] = 0
		}
	}
	if cap(buffer) > 1<<20 {
		return nil
	}
	return buffer
}
