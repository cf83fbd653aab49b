package export

import (
	"context"
	"iter"
	"sync"

	"trajgen/pipeline/episode"
)

// Ahead yields the same episodes in the same order, each read and decoded while the one before it is worked on. What reads
// ends with the loop.
func Ahead(source Source) Source { return ahead{source} }

type ahead struct{ Source }

// decoded is an episode that was read, or why it was not.
type decoded struct {
	ep  *episode.Episode
	err error
}

func (a ahead) Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		inner, cancel := context.WithCancel(ctx)
		var wait sync.WaitGroup
		defer wait.Wait()
		defer cancel()
		read := make(chan decoded)
		wait.Go(func() {
			defer close(read)
			for ep, err := range a.Source.Episodes(inner) {
				select {
				case read <- decoded{ep, err}:
				case <-inner.Done():
					return
				}
			}
		})
		for d := range read {
			if !yield(d.ep, d.err) || d.err != nil {
				return
			}
		}
		if err := context.Cause(ctx); err != nil {
			yield(nil, err)
		}
	}
}
