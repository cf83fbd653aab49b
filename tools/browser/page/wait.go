package page

import (
	"context"
	"time"
)

const pollEvery = 100 * time.Millisecond

// Wait waits until a text is on the page, or with gone until it is not any more, and says whether that came about in time.
func (p *Page) Wait(ctx context.Context, text string, gone bool, most time.Duration) (bool, error) {
	end := time.After(most)
	for {
		shown, err := p.Shows(ctx, text)
		if err != nil || shown != gone {
			return err == nil, err
		}
		select {
		case <-time.After(pollEvery):
		case <-end:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// Shows says whether a text can be read on the page, in any frame.
func (p *Page) Shows(ctx context.Context, text string) (bool, error) {
	ctx, end := p.begin(ctx)
	defer end()
	main, err := p.doc.look(ctx)
	if err != nil {
		return false, failed(ctx, err)
	}
	for f := range main.all() {
		var shows bool
		if err := p.doc.call(ctx, f, &shows, "text => seer.act.shows(text)", text); err != nil && (ctx.Err() != nil || f == main) {
			return false, failed(ctx, err)
		}
		if shows {
			return true, nil
		}
	}
	return false, nil
}
