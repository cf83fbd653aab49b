package model

import (
	"context"
	"errors"
	"strings"
	"time"

	"trajgen/pipeline/episode"
)

// Ask puts a question of a call to a user, an approver, a model or a service: ask does so, and stores the reply in answer. Where the
// record of the attempt has the answer, ask is not called. Role and question distinguish questions.
type Ask func(role, question string, answer any, ask func() error) error

// Side is how the tools of an attempt ask models beside the agent's.
type Side struct {
	Asker Asker
	Seed  int
	Ask   Ask
	// Price is what a usage costs at the price of the first of the names that has one; nil when that is not known.
	Price func(u episode.Usage, names ...string) *float64
}

// Inquire asks m, or takes from the record what it said to the question. about says who is asked and about what; Inquire adds what
// came of it. What the model fails with is in the inquiry, unless the run cannot go on with it. A limit of 0 is none.
func (s Side) Inquire(ctx context.Context, m Model, about episode.Inquiry, question string, limit time.Duration, req Request) (
	string, episode.Inquiry, error) {
	var answer struct {
		Text    string          `json:"text"`
		Inquiry episode.Inquiry `json:"inquiry"`
	}
	err := s.Ask(about.Role, question, &answer, func() error {
		answer.Inquiry = about
		q, limited := &answer.Inquiry, ctx
		if limit > 0 {
			var cancel context.CancelFunc
			limited, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		req.Asker = s.Asker
		reply, err := m.Complete(limited, req)
		failed, known := errors.AsType[*Error](err)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && (!known || failed.Fatal):
			return err
		case err != nil:
			q.Failed = failed.Class
			return nil
		}
		q.Model, q.Usage, q.CostUSD = reply.Model, &reply.Usage, s.Price(reply.Usage, reply.Model, q.Asked)
		if answer.Text = strings.TrimSpace(reply.Message.Content); answer.Text == "" {
			q.Failed = "empty"
		}
		return nil
	})
	return answer.Text, answer.Inquiry, err
}
