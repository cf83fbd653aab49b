package run

import (
	"context"
	"encoding/json"
	"fmt"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/tools"
)

// remembered is an approver whose answers are kept in the episode's record, if it has one, so that no model or person is asked
// again after a crash.
type remembered struct {
	tools.Approver
	asker model.Asker
	ask   model.Ask
}

func (r remembered) Approve(ctx context.Context, q tools.Question) (tools.Answer, error) {
	q.Asker = r.asker
	question, err := json.Marshal(q)
	if err != nil {
		return tools.Answer{}, fmt.Errorf("question: %w", err)
	}
	// Answer's own JSON form is the approvers', without name and usage.
	type answered struct {
		Answer tools.Answer   `json:"answer"`
		By     string         `json:"by"`
		Usage  *episode.Usage `json:"usage,omitempty"`
	}
	var got answered
	err = r.ask(record.Approver, string(question), &got, func() (err error) {
		got.Answer, err = r.Approver.Approve(ctx, q)
		got.By, got.Usage = got.Answer.By, got.Answer.Usage
		return err
	})
	got.Answer.By, got.Answer.Usage = got.By, got.Usage
	return got.Answer, err
}
