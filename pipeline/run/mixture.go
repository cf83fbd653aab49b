package run

import (
	"cmp"
	"context"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/tools/moa"
)

// openMixture opens the models that mixture_of_agents asks, if the run names some.
func (m *models) openMixture(context.Context) error {
	s := m.File.MOA
	if m.File.NoUser {
		return nil
	}
	patience := model.Patience{Timeout: cmp.Or(s.Timeout, moa.DefaultTime), Retries: moa.DefaultRetries}
	if s.Retries != nil {
		patience.Retries = *s.Retries
	}
	for i, each := range s.All() {
		usual := moa.ReferenceTemperature
		if i == len(s.References) {
			usual = moa.AggregatorTemperature
		}
		settings := model.Settings{MaxTokens: s.Tokens(), Temperature: cmp.Or(each.Temperature, &usual)}
		client, err := m.openSide(sideModel{record.Mixture, each.Model, each.BaseURL, each.APIKeyEnv}, model.Config{
			Settings: settings, Patience: patience,
		})
		if err != nil {
			return err
		}
		m.mixed = append(m.mixed, client)
	}
	return nil
}

// beside is what an attempt has for mixture_of_agents.
func (m *models) beside(ep *episode.Episode, ask model.Ask) []any {
	if len(m.mixed) == 0 {
		return nil
	}
	return []any{&moa.Mixture{Settings: m.File.MOA, Models: m.mixed, Side: m.side(ep, "moa", ask)}}
}

// askNow asks where no record is kept.
func askNow(_, _ string, _ any, ask func() error) error { return ask() }

// Lacking are the tools for which a run file does not declare what they need, and what that is.
func (f *File) Lacking() map[string]string {
	all := map[string]string{}
	if !f.MOA.Declared() {
		all["mixture_of_agents"] = "it needs models, in the run file as moa: {references: [{model: NAME}, ...], aggregator: {model: NAME}}"
	}
	if f.Media.Video == "" {
		all["video_generate"] = "it needs a provider, in the run file as media: {video: fal}"
	}
	return all
}
