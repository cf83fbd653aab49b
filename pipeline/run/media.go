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

// openMedia opens who makes and sees pictures, speech and videos.
func (s *services) openMedia(context.Context) error {
	of, shelf := s.File.Media, &media.Shelf{Images: s.images.Read}
	config := media.Config{Settings: of, Getenv: os.Getenv, Now: time.Now, Shelf: shelf, Replay: s.web.Mode() == web.Replay}
	if s.ledger != nil {
		config.Meter = s.ledger
	}
	if of.VisionModel != "" && !s.apart {
		client, err := s.openSide(sideModel{record.Vision, of.VisionModel, of.VisionBaseURL, of.VisionAPIKeyEnv}, model.Config{
			Settings: model.Settings{MaxTokens: media.LookTokens}, Images: shelf.Read,
			Patience: model.Patience{Timeout: media.LookTime, Retries: 2},
		})
		if err != nil {
			return err
		}
		config.Vision = client
	}
	makes, err := media.Open(config)
	if err != nil {
		return s.onResume(err)
	}
	s.closers = append(s.closers, makes.Close)
	s.made(func(a attempt) []any {
		return []any{makes.View(media.Attempt{Web: a.web, Side: s.side(a.ep, "vision", a.ask)})}
	})
	return nil
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
