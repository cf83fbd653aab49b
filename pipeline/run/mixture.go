package run

import (
	"cmp"
	"context"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/tools/moa"
)

// openMixture opens the models that mixture_of_agents asks, if the run names some.
func (s *services) openMixture(context.Context) error {
	of := s.File.MOA
	if s.File.NoUser || !of.Declared() {
		return nil
	}
	patience := model.Patience{Timeout: cmp.Or(of.Timeout, moa.DefaultTime), Retries: moa.DefaultRetries}
	if of.Retries != nil {
		patience.Retries = *of.Retries
	}
	var mixed []model.Model
	for i, each := range of.All() {
		usual := moa.ReferenceTemperature
		if i == len(of.References) {
			usual = moa.AggregatorTemperature
		}
		settings := model.Settings{MaxTokens: of.Tokens(), Temperature: cmp.Or(each.Temperature, &usual)}
		client, err := s.openSide(sideModel{record.Mixture, each.Model, each.BaseURL, each.APIKeyEnv}, model.Config{
			Settings: settings, Patience: patience,
		})
		if err != nil {
			return err
		}
		mixed = append(mixed, client)
	}
	s.made(func(a attempt) []any {
		return []any{&moa.Mixture{Settings: of, Models: mixed, Side: s.side(a.ep, "moa", a.ask)}}
	})
	return nil
}
