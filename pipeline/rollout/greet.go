package rollout

import (
	"cmp"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// greet says what stands before the task's prompt: the system message and the run's examples.
//
// Many chat templates take one system message and no more, so the harness's words stand in the same one as the task's:
// the run's ephemeral prompt, behind it the list of skills, and then what is remembered, which differs between tasks and so
// comes after what a server can have cached for all of them. Ephemeral and Recalled are exactly what to cut off. Of all that
// a subagent gets the skills alone.
func (a *attempt) greet() {
	system := cmp.Or(a.task.System, a.Prompts.System)
	sent := system
	add := func(text string) string {
		if text != "" && sent != "" {
			text = "\n\n" + text
		}
		sent += text
		return text
	}
	if a.parent == nil {
		a.ep.Ephemeral = add(a.Prompts.Ephemeral)
	}
	a.ep.Recalled = add(a.kit.skillset)
	if a.parent == nil {
		a.ep.Recalled += add(recall(a.ep.Memory))
	}
	if sent != "" {
		a.say(episode.Message{Role: "system", Content: sent, Harness: system == ""})
	}
	if a.parent != nil {
		return
	}
	for _, message := range a.prefill {
		message.Harness = true
		message.Calls = slices.Clone(message.Calls)
		for i := range message.Calls {
			message.Calls[i].Sent = model.SentArguments(message.Calls[i].Arguments, nil)
		}
		a.say(message)
	}
}
