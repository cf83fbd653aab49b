package rows

import (
	"fmt"
	"reflect"

	"trajgen/pipeline/episode"
)

// New is the row of an episode. The row shares the episode's texts.
func New(ep *episode.Episode) (row Trajectory, err error) {
	if err := fill(reflect.ValueOf(&row).Elem(), reflect.ValueOf(ep).Elem()); err != nil {
		return row, fmt.Errorf("row of episode %s: %w", ep.ID, err)
	}
	row.SchemaVersion = episode.SchemaVersion
	for i := range row.Compactions {
		if c := &row.Compactions[i]; *c.To <= *c.From {
			c.From, c.To = nil, nil
		}
	}
	row.tokenColumns(ep)
	if p := ep.Proof; p != nil {
		row.ProofGold, row.ProofNoop, row.ProofAttacks = p.Gold, p.Noop, p.Passed()
	}
	if usage, asked := ep.ApproverUsage(); asked {
		row.ApproverUsage = newUsage(usage)
	}
	return row, nil
}

// Calls are the rows of an episode's calls.
func Calls(ep *episode.Episode) []ToolCall {
	rows := make([]ToolCall, len(ep.Calls))
	for i := range rows {
		row := &rows[i]
		if err := fill(reflect.ValueOf(row).Elem(), reflect.ValueOf(&ep.Calls[i]).Elem()); err != nil {
			panic(err) // of JSON, which no column of a call is made to
		}
		row.SchemaVersion, row.EpisodeID, row.Run, row.Outcome = episode.SchemaVersion, ep.ID, ep.Run, string(ep.Outcome)
		row.Row, row.TaskID, row.Sample, row.Attempt = int64(ep.Row), ep.Key.Task, int32(ep.Key.Sample), int32(ep.Attempt)
		row.Ordinal = int32(i)
		if sum := ep.Calls[i].Digest(); sum != "" {
			row.ArgsSHA256 = &sum
		}
	}
	return rows
}
