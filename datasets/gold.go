package datasets

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"trajgen/pipeline/episode"
)

// defaultAnswer ends a gold that only names a command.
const defaultAnswer = "Done."

// goldCommand is the short form of a gold.
type goldCommand struct{ command, answer string }

var goldKeys = keys[goldCommand]{
	"command": field(asPlain, func(g *goldCommand) *string { return &g.command }),
	"answer":  field(asText, func(g *goldCommand) *string { return &g.answer }),
}

// readGold takes a list of steps, {"command": ..., "answer": ...}, {"answer": ...}, or the answer as plain text. Text that
// is JSON counts as JSON only when it has one of these forms, as an answer may well be JSON.
func readGold(p *problems, t *episode.Task, at string, value json.RawMessage) {
	if text, ok := asString(value); ok {
		if value = structured(value); !looksLikeGold(value) {
			if strings.TrimSpace(text) == "" {
				p.addf("%s: it is empty", at)
			}
			t.Gold = []episode.Step{{Content: text}}
			return
		}
	}
	switch kindOf(value) {
	case "an object":
		readGoldCommand(p, t, at, value)
	case "a list":
		items := p.list(at, value, "steps")
		if len(items) == 0 {
			p.addf("%s: an empty list; leave the field out for a task without a reference solution", at)
		}
		for i, step := range items {
			t.Gold = append(t.Gold, readStep(p, item(at, i), step))
		}
	default:
		p.addf("%s: %s, want a list of steps, {\"command\": ...}, {\"answer\": ...} or the answer as a string", at, kindOf(value))
	}
}

// readSubagents takes an object of golds by the goals that they reach.
func readSubagents(p *problems, t *episode.Task, at string, value json.RawMessage) {
	entries, err := members(structured(value))
	if err != nil {
		p.addf("%s: %v with a gold for each goal that the task's gold delegates", at, err)
		return
	}
	for _, entry := range entries {
		of, inner := episode.Task{}, at+"."+strconv.Quote(entry.Name)
		readGold(p, &of, inner, entry.Value)
		if strings.TrimSpace(entry.Name) == "" || len(of.Gold) == 0 || len(of.Gold[len(of.Gold)-1].Calls) > 0 {
			p.addf("%s: want a goal, and for it a gold that ends with an answer", inner)
		}
		if t.Subagents == nil {
			t.Subagents = map[string][]episode.Step{}
		}
		t.Subagents[strings.TrimSpace(entry.Name)] = of.Gold
	}
}

func looksLikeGold(value json.RawMessage) bool {
	has := func(object json.RawMessage, names ...string) bool {
		c, _ := columnsIn(object)
		return slices.ContainsFunc(names, func(name string) bool { return c.has(name) })
	}
	items, _ := elements(value)
	return has(value, "command", "answer") || len(items) > 0 && !slices.ContainsFunc(items, func(item json.RawMessage) bool {
		return !has(item, "content", "tool_calls")
	})
}

func readGoldCommand(p *problems, t *episode.Task, at string, value json.RawMessage) {
	var gold goldCommand
	goldKeys.read(p, &gold, at, value)
	blank := strings.TrimSpace(gold.answer) == ""
	if strings.TrimSpace(gold.command) != "" {
		arguments := episode.MustJSON(map[string]string{"command": gold.command})
		t.Gold = append(t.Gold, episode.Step{Calls: []episode.GoldCall{{Name: "terminal", Arguments: arguments}}})
		if blank {
			gold.answer = defaultAnswer
		}
	} else if blank {
		p.addf("%s: it has neither a command nor an answer", at)
	}
	t.Gold = append(t.Gold, episode.Step{Content: gold.answer})
}

// readStep takes a turn of the assistant.
func readStep(p *problems, at string, value json.RawMessage) episode.Step {
	m := episode.Message{Role: "assistant"}
	whole := assistantKeys.whole(p, &m, at, value)
	if m.Role != "assistant" {
		p.addf("%s: role is %q; a gold has only the assistant's turns, results come from the tools", at, m.Role)
	} else if whole && len(m.Calls) == 0 && strings.TrimSpace(m.Content) == "" {
		p.addf("%s: it has neither tool_calls nor content", at)
	}
	return stepOf(m)
}

// stepOf is a turn of the assistant as a step of a reference solution.
func stepOf(m episode.Message) episode.Step {
	step := episode.Step{Content: m.Content, Reasoning: m.Reasoning}
	for _, call := range m.Calls {
		step.Calls = append(step.Calls, episode.GoldCall{Name: call.Name, Arguments: json.RawMessage(call.Arguments)})
	}
	return step
}

// checkGold checks that all of a gold can be played: a step without calls is an answer, and an answer ends the episode or is
// followed by the next message of the user.
func checkGold(p *problems, t *episode.Task) {
	if len(t.Gold) == 0 {
		return
	}
	if len(t.Gold[len(t.Gold)-1].Calls) > 0 {
		p.addf("gold: the last step makes tool calls, want one with the final answer alone")
	}
	answers, questions := 0, 0
	for _, step := range t.Gold {
		if len(step.Calls) == 0 {
			answers++
		}
	}
	for _, message := range t.Prompt {
		if message.Role == "user" {
			questions++
		}
	}
	if answers > questions {
		p.addf("gold: %d steps have no tool calls, but each is an answer and the user has %d message(s): what follows would not be played", answers, questions)
	}
}
