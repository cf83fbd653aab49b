package media

import (
	"context"
	"errors"

	"trajgen/outputs/log/blobs"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// Unpriced is the class of a model without a price, in a run whose budget needs one.
const Unpriced = "no_price"

// order is something that a provider is to make of a text.
type order struct {
	role, text string
	worst      model.Bound
	ask        func() (used episode.Usage, err error)
}

// paid has a provider make something. Where the run has a budget, the most that it can cost is set aside before. What it made is
// in the list of what was asked, as a model's answer is.
func (v *View) paid(ctx context.Context, s *service, about *About, o order) error {
	o.worst.Model, o.worst.Turn = about.Model, 1 // the episode has begun
	receipt, err := v.reserve(ctx, s, o)
	if err != nil {
		return err
	}
	used, err := o.ask()
	if err == nil {
		made := episode.Inquiry{Role: o.role, Asked: about.Model, Text: blobs.Digest([]byte(o.text)), Usage: &used}
		if v.attempt.Price != nil {
			made.CostUSD = v.attempt.Price(used, about.Model)
		}
		about.Asked = append(about.Asked, made)
	}
	switch {
	case receipt == nil:
	case err == nil:
		receipt.Settle("", used)
	case s.sent.owed:
		receipt.Settle("", episode.Usage{}) // it may be billed
	default:
		receipt.Void()
	}
	return err
}

// reserve sets money aside. There is no receipt where nothing is spent.
func (v *View) reserve(ctx context.Context, s *service, o order) (model.Receipt, error) {
	if v.config.Meter == nil || v.attempt.Web.Mode() == web.Replay {
		return nil, nil
	}
	receipt, err := v.config.Meter.Reserve(ctx, o.worst)
	switch halts := (interface{ Halt() bool })(nil); {
	case err == nil:
		return receipt, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &halts):
		_ = v.attempt.Ask(o.role, "", nil, func() error { return err }) // which lets the episode know
		return nil, s.Errorf(source.Operator, model.ClassBudget, "%v", err)
	}
	return nil, s.Errorf(source.Agent, Unpriced, "%v; ask for another model, or for the usual one", err)
}
