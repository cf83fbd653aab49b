package export

import (
	"context"
	"fmt"
	"iter"

	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

// placed is a row with where it stands.
type placed[Row any] struct {
	row    *Row
	path   string
	number int // from 1
}

// maxTree bounds the subagents that are read of one episode, far above those that one can have.
const maxTree = 100_000

// nested gives episodes their subagents, whose rows stand behind theirs.
func nested(all iter.Seq2[*episode.Episode, error]) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		var root *episode.Episode
		var tree map[string]*episode.Episode // of the subagents of root
		for ep, err := range all {
			switch {
			case err != nil:
			case ep.Origin == nil:
				if root != nil && !yield(root, nil) {
					return
				}
				root, tree = ep, map[string]*episode.Episode{ep.ID: ep}
				continue
			case tree[ep.Origin.Parent] == nil || tree[ep.ID] != nil || len(tree) == maxTree:
				err = fmt.Errorf("the subagent %.80q does not stand behind its parent %.80q, or stands there twice", ep.ID, ep.Origin.Parent)
			default:
				parent := tree[ep.Origin.Parent]
				parent.Children = append(parent.Children, ep)
				tree[ep.ID] = ep
				continue
			}
			yield(nil, err)
			return
		}
		if root != nil {
			yield(root, nil)
		}
	}
}

// joined makes episodes of two tables in the same order: one goes over both at once.
func joined(ctx context.Context, trajectories iter.Seq2[placed[rows.Trajectory], error], calls iter.Seq2[placed[rows.ToolCall], error]) iter.Seq2[*episode.Episode, error] {
	return func(yield func(*episode.Episode, error) bool) {
		next, stop := iter.Pull2(calls)
		defer stop()
		call, err, more := next()
		for at, failed := range trajectories {
			if failed == nil {
				failed = err
			}
			if failed == nil {
				failed = context.Cause(ctx)
			}
			if failed != nil {
				yield(nil, failed)
				return
			}
			var own []rows.ToolCall
			for more && err == nil && call.row.EpisodeID == at.row.ID {
				if len(own) == maxCalls {
					yield(nil, fmt.Errorf("read %s, row %d: more than %d tool calls of episode %.60q", call.path, call.number, maxCalls, at.row.ID))
					return
				}
				own = append(own, *call.row)
				call, err, more = next()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			ep, err := at.row.Episode(own)
			if err == nil {
				err = sound(ep)
			}
			if err != nil {
				yield(nil, fmt.Errorf("read %s, row %d: %w", at.path, at.number, err))
				return
			}
			if !yield(ep, nil) {
				return
			}
		}
		switch {
		case err != nil:
			yield(nil, err)
		case more:
			yield(nil, fmt.Errorf("read %s, row %d: a call of episode %.60q, which is missing or in another place (want the calls in the order of the trajectories)",
				call.path, call.number, call.row.EpisodeID))
		}
	}
}
