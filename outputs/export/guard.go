package export

import (
	"context"
	"fmt"
	"math"

	"trajgen/pipeline/episode"
)

// writable says why an episode cannot be written now where an earlier error may have been for good. That of an episode's
// reward is from then on.
func writable(ctx context.Context, ep *episode.Episode, failed *error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if *failed == nil {
		*failed = finite(ep)
	}
	return *failed
}

func (f *file) writable(ctx context.Context, ep *episode.Episode) error {
	return writable(ctx, ep, &f.failed)
}

func (f *folderSink) writable(ctx context.Context, ep *episode.Episode) error {
	return writable(ctx, ep, &f.failed)
}

// finite refuses an episode whose reward is not a number: a format without rewards must not pass over one either.
func finite(ep *episode.Episode) error {
	if ep.Reward != nil && (math.IsNaN(*ep.Reward) || math.IsInf(*ep.Reward, 0)) {
		return fmt.Errorf("export episode %s: its reward is %v, which is not a number", ep.ID, *ep.Reward)
	}
	return nil
}
