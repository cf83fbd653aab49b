package check

import (
	"context"
	"errors"

	"trajgen/outputs/reliability"
	"trajgen/pipeline/run"
)

// Reliability says what agents of a run did and lost when tools failed, also compared with another run unless versus is "".
func Reliability(ctx context.Context, dir, versus string) (*reliability.Report, error) {
	r, err := reliabilityOf(ctx, dir)
	if err != nil || versus == "" {
		return r, err
	}
	other, err := reliabilityOf(ctx, versus)
	if err != nil {
		return nil, err
	}
	r.Compare(other)
	return r, nil
}

func reliabilityOf(ctx context.Context, dir string) (_ *reliability.Report, err error) {
	m, reader, err := run.OpenFinished(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	builder := reliability.Builder{Prices: m.RunFile.Budget.Prices, Asked: m.RunFile.Model.Name}
	for ep, err := range reader.Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		if err := builder.Add(ep); err != nil {
			return nil, err
		}
	}
	return builder.Finish(), nil
}
