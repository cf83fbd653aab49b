package export

import (
	"context"
	"iter"

	"trajgen/pipeline/episode"
)

// Seen yields what source does, and shows each episode to see on its way, so that one reading serves two.
func Seen(source Source, see func(*episode.Episode)) Source {
	return mapped{source, func(ep *episode.Episode) *episode.Episode {
		see(ep)
		return ep
	}}
}

// mapped yields what is made of each episode.
type mapped struct {
	Source
	made func(*episode.Episode) *episode.Episode
}

func (m mapped) Episodes(ctx context.Context) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		for ep, err := range m.Source.Episodes(ctx) {
			if err == nil {
				ep = m.made(ep)
			}
			if !yield(ep, err) {
				return
			}
		}
	}
}
