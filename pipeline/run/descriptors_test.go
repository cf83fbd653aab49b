package run

import (
	"testing"

	"trajgen/pipeline/model"
)

func TestFitFiles(t *testing.T) {
	two := []string{"http://a/v1", "http://b/v1"}
	for _, tt := range []struct {
		name           string
		give           model.Config
		workers, files int
		min, max       int
		warns          bool
	}{
		{"there is room", model.Config{Patience: model.Patience{MinInFlight: 64}}, 64, 1024, 64, 0, false},
		{"room for the requests, not for as many sandboxes", model.Config{}, 10000, 20000, 0, 0, false},
		{"more than there is room for", model.Config{Patience: model.Patience{MinInFlight: 50000}}, 50000, 20000, 14488, 14488, true},
		{"the user asked for fewer", model.Config{Patience: model.Patience{MaxInFlight: 1000}}, 50000, 20000, 0, 1000, false},
		{"several endpoints share", model.Config{Settings: model.Settings{Endpoints: two}}, 50000, 20000, 0, 7244, true},
		{"hardly any", model.Config{Patience: model.Patience{MinInFlight: 3}}, 1000, 64, 3, 16, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := tt.give
			warning := fitFiles(&cfg, tt.workers, tt.files)
			if cfg.MinInFlight != tt.min || cfg.MaxInFlight != tt.max || (warning != "") != tt.warns {
				t.Errorf("fitFiles = from %d to %d, %q, want %d and %d, a warning %v", cfg.MinInFlight, cfg.MaxInFlight, warning, tt.min, tt.max, tt.warns)
			}
		})
	}
}
