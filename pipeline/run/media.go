package run

import (
	"context"
	"os"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
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
func (e *Experiment) mediaView(ep *episode.Episode, view *web.View, ask model.Ask) *media.View {
	return e.media.View(media.Attempt{Web: view, Side: e.side(ep, "vision", ask)})
}

// side is how tools of an attempt ask models beside the agent's for a purpose.
func (o *opened) side(ep *episode.Episode, purpose string, ask model.Ask) model.Side {
	return model.Side{Asker: model.AskerOf(ep), Seed: int(ep.Key.Rand(purpose).Int32() >> 1), Ask: ask, Price: o.price}
}

// price is what a usage costs at the price of the first of the names that has one; nil when that is not known.
func (o *opened) price(u episode.Usage, names ...string) *float64 {
	_, price, known := o.File.Budget.Prices.Find(names...)
	if !known || !u.Reported {
		return nil
	}
	return new(price.Of(u))
}
