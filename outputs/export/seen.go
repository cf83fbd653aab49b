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

// throughout applies a function to an episode and all of its subagents.
func throughout(made func(*episode.Episode) *episode.Episode) func(*episode.Episode) *episode.Episode {
	var all func(ep *episode.Episode) *episode.Episode
	all = func(ep *episode.Episode) *episode.Episode {
		if len(ep.Children) == 0 {
			return made(ep)
		}
		whole := *made(ep)
		whole.Children = make([]*episode.Episode, len(ep.Children))
		for i, child := range ep.Children {
			whole.Children[i] = all(child)
		}
		return &whole
	}
	return all
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
