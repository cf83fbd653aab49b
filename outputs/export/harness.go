package export

import (
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// WithoutHarness yields the episodes of a source without what the harness said in them: messages that are flagged, and
// in the system message the run's ephemeral prompt and what was recalled. What is left is what the dataset, the model
// and the tools said; messages that show images are results. Tokens go where something was taken out, as the ids are
// those of the whole conversation; that it was shortened is kept, without the words that stood in.
func WithoutHarness(source Source) Source { return mapped{source, throughout(bareOf)} }

// bareOf is an episode without the harness's words. The one that is given stays as it is.
func bareOf(ep *episode.Episode) *episode.Episode {
	bare := *ep
	bare.Ephemeral, bare.Recalled = "", ""
	bare.Messages = make([]episode.Message, 0, len(ep.Messages))
	moved := make([]int, len(ep.Messages)+1) // where a message is now
	for i, m := range ep.Messages {
		moved[i] = len(bare.Messages)
		if m.Harness && len(m.Images()) == 0 { // images are what tools showed
			continue
		}
		if i == 0 && m.Role == "system" {
			rest := strings.TrimSuffix(strings.TrimSuffix(m.Content, ep.Recalled), ep.Ephemeral)
			if rest == "" && m.Content != "" {
				continue
			}
			m.Content = rest
		}
		bare.Messages = append(bare.Messages, m)
	}
	moved[len(ep.Messages)] = len(bare.Messages)
	if len(bare.Messages) == len(ep.Messages) && ep.Ephemeral+ep.Recalled == "" && len(ep.Compactions) == 0 {
		return ep
	}
	place := func(i int) int { return moved[min(max(i, 0), len(ep.Messages))] }
	bare.Drift = nil
	bare.Turns = make([]episode.Turn, len(ep.Turns))
	for i, turn := range ep.Turns {
		turn.Message, turn.Tokens = place(turn.Message), nil
		bare.Turns[i] = turn
	}
	bare.Compactions = slices.Clone(ep.Compactions)
	for i := range bare.Compactions {
		c := &bare.Compactions[i]
		c.From, c.To, c.Summary, c.Replaced = place(c.From), place(c.To), "", nil
	}
	return &bare
}
