package compress_test

import (
	"strings"
	"testing"

	"trajgen/outputs/compress"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// TestImagesCountInBudgets holds that an image has as many tokens for compress as for the window of a model.
func TestImagesCountInBudgets(t *testing.T) {
	image := episode.Part{Type: episode.PartImage, Width: 750, Height: 100}
	ep := &episode.Episode{Messages: []episode.Message{
		{Role: "user", Content: strings.Repeat("word", 100), Parts: []episode.Part{image}}, {Role: "assistant", Content: "ok"},
	}}
	for _, reported := range []bool{false, true} {
		ep.Turns = []episode.Turn{{Message: 1, Usage: episode.Usage{Prompt: 200, Reported: reported}}}
		ruler := compress.Measure(ep)
		blind := ep.Messages[0]
		blind.Parts = nil
		with, without := ruler.Message(&ep.Messages[0]), ruler.Message(&blind)
		if with-without != model.ImageTokens(image) || ruler.Learned != reported || without < 90 || without > 115 {
			t.Errorf("learned %v: %d tokens with the image, %d without, want %d more", ruler.Learned, with, without, model.ImageTokens(image))
		}
	}
}
