package rollout

import (
	"fmt"
	"slices"
	"strings"

	"trajgen/pipeline/episode"
)

// show says the images that the calls of a turn attached, in one message of the user behind their results: servers take images of
// users alone. It is the harness's message, and what it shows are results.
func (a *attempt) show(calls []episode.ToolCall) {
	var parts []episode.Part
	var texts []string
	for _, call := range calls {
		if len(call.Images) == 0 || call.SameAs != "" {
			continue
		}
		texts = append(texts, fmt.Sprintf("Shown by %s (%s):", call.Name, call.ID))
		parts = append(append(parts, episode.Part{Type: episode.PartText, Text: texts[len(texts)-1]}), call.Images...)
	}
	switch len(texts) {
	case 0:
		return
	case 1:
		parts = parts[1:] // the message's own text comes first anyway
	}
	a.say(episode.Message{Role: "user", Content: strings.Join(texts, "\n"), Parts: parts, Harness: true})
}

// depict keeps the images of the task's prompt and of the run's examples. A dataset has their bytes, a row their digests.
func (a *attempt) depict() (err error) {
	if a.ep.Task.Prompt, err = a.kept(a.task.Prompt); err != nil {
		return err
	}
	a.prefill, err = a.kept(a.Prompts.Prefill)
	return err
}

func (p *Player) kept(messages []episode.Message) ([]episode.Message, error) {
	kept := messages
	for i := range messages {
		if len(messages[i].Images()) == 0 {
			continue
		}
		if &kept[0] == &messages[0] {
			kept = slices.Clone(messages)
		}
		kept[i].Parts = slices.Clone(messages[i].Parts)
		for j := range kept[i].Parts {
			part := &kept[i].Parts[j]
			if part.Type != episode.PartImage {
				continue
			}
			if !p.Sees || p.Images == nil {
				return nil, faulty(episode.ModelError, "no_vision", fmt.Errorf("message %d of the prompt has an image, and the model takes none", i))
			}
			image, err := p.Images.Keep(part.MIME, part.Data)
			if err != nil {
				return nil, faulty(episode.ToolError, "prompt_image", fmt.Errorf("message %d of the prompt: %w", i, err))
			}
			*part = image
		}
	}
	return kept, nil
}
