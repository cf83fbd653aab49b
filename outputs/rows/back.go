package rows

import (
	"errors"
	"fmt"
	"reflect"

	"trajgen/pipeline/episode"
)

// Lost is what an episode loses on its way through a row. Everything else comes back as it was, but that an empty list
// and none are one.
var Lost = []string{
	"what is under a microsecond in times and durations",
	"the name by which a summary's model was asked for",
	"which call an approver's tokens were spent on (their sum is kept)",
	"the pause after a fault that ended an episode or an attempt",
	"how many recorded turns of an attempt were not played again",
}

// Episode is the inverse of New and Calls: it makes the episode of a row and of its calls, but for what Lost names. A row
// may come from a stranger: what no episode can hold is an error that names everything wrong at once.
func (row *Trajectory) Episode(calls []ToolCall) (*episode.Episode, error) {
	b, ep := &back{}, &episode.Episode{}
	b.read(reflect.ValueOf(row).Elem(), reflect.ValueOf(ep).Elem())
	ep.Task.ID, ep.Task.Row = row.TaskID, ep.Row
	if ep.Origin != nil {
		ep.Key.Path = episode.PathOf(ep.ID)
	}
	if ep.Twin != nil {
		ep.Key.Twin = ep.Twin.Name()
	}
	for i := range ep.Earlier {
		if fault := ep.Earlier[i].Fault; fault != nil {
			fault.Outcome = ep.Earlier[i].Outcome
		}
	}
	if len(calls) > 0 {
		ep.Calls = make([]episode.ToolCall, len(calls))
	}
	for i := range calls {
		b.read(reflect.ValueOf(&calls[i]).Elem(), reflect.ValueOf(&ep.Calls[i]).Elem())
	}
	if row.ApproverUsage.reported() {
		for i := range ep.Calls {
			if verdict := ep.Calls[i].Verdict; verdict != nil {
				verdict.Usage = new(row.ApproverUsage.episode())
				break
			}
		}
	}
	b.tokens(row, ep)
	if err := errors.Join(b.wrong...); err != nil {
		return nil, fmt.Errorf("row of episode %.60q: %w", row.ID, err)
	}
	return ep, nil
}

func (u Usage) reported() bool { return u.Prompt != nil || u.Completion != nil }

func (u Usage) episode() episode.Usage {
	if !u.reported() {
		return episode.Usage{}
	}
	return episode.Usage{
		Prompt: int(orZero(u.Prompt)), Completion: int(orZero(u.Completion)), Reasoning: int(orZero(u.Reasoning)),
		Cached: int(orZero(u.Cached)), Reported: true,
	}
}

func same[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

func orZero[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}
