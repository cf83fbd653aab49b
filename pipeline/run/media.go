package run

import (
	"context"
	"os"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/pipeline/rollout"
	"trajgen/tools/media"
	"trajgen/tools/web"
)

// makers make and see pictures, speech and videos.
type makers struct{ media *media.Media }

// openMedia opens who makes and sees pictures, speech and videos.
func (e *Experiment) openMedia(context.Context) (err error) {
	s, shelf := e.File.Media, &media.Shelf{Images: e.images.Read}
	config := media.Config{Settings: s, Getenv: os.Getenv, Now: time.Now, Shelf: shelf, Replay: e.web.Mode() == web.Replay}
	if e.ledger != nil {
		config.Meter = e.ledger
	}
	if s.VisionModel != "" {
		client, err := e.openSide(sideModel{record.Vision, s.VisionModel, s.VisionBaseURL, s.VisionAPIKeyEnv}, model.Config{
			Settings: model.Settings{MaxTokens: media.LookTokens}, Images: shelf.Read,
			Patience: model.Patience{Timeout: media.LookTime, Retries: 2},
		})
		if err != nil {
			return err
		}
		config.Vision = client
	}
	if e.media, err = media.Open(config); err != nil {
		return e.onResume(err)
	}
	e.closers = append(e.closers, e.media.Close)
	return nil
}

// mediaView is the media of an attempt.
func (e *Experiment) mediaView(ep *episode.Episode, view *web.View, ask rollout.Ask) *media.View {
	return e.media.View(media.Attempt{
		Web: view, Ask: ask, Seed: int(ep.Key.Rand("vision").Int32() >> 1), Price: e.price,
		Asker: model.AskerOf(ep),
	})
}

// price is what a usage costs at the price of the first of the names that has one; nil when that is not known.
func (o *opened) price(u episode.Usage, names ...string) *float64 {
	_, price, known := o.File.Budget.Prices.Find(names...)
	if !known || !u.Reported {
		return nil
	}
	return new(price.Of(u))
}
