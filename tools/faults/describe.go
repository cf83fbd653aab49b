package faults

import (
	"context"

	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// Line is what a class does to a tool.
type Line struct {
	Tool     string   `json:"tool"`
	Class    string   `json:"class"`
	Variants []string `json:"variants"` // beside the usual form
	Loud     bool     `json:"loud"`     // the result says that something is wrong
	Times    int      `json:"times"`    // how many calls it strikes; 0 is to the end of the episode
	Says     string   `json:"says"`
	Example  string   `json:"example,omitempty"` // what the model would see, of a class that answers in place of the tool
}

// Describe lists the classes that apply to calls of a tool, with its example arguments.
func Describe(ctx context.Context, toolset *registry.Toolset, tool registry.Tool) []Line {
	lines := []Line{}
	raw := tool.Example()
	call := &episode.ToolCall{Name: tool.Name, RawArguments: string(raw), Arguments: raw}
	for _, c := range classes() {
		if !c.applies(&tool, call) || len(toolset.Names()) < c.needs {
			continue
		}
		line := Line{Tool: tool.Name, Class: c.name, Variants: append([]string{}, c.variants...), Loud: c.loud, Times: c.times, Says: c.says}
		if c.answers {
			planter := NewSingle(Settings{}, episode.Key{}, Single{Class: c.name})
			session := toolset.Session(registry.SessionConfig{Services: []any{planter}})
			line.Example = session.Call(ctx, registry.Request{ID: "example", Name: tool.Name, Arguments: string(raw)}).Result
			session.Close()
		}
		lines = append(lines, line)
	}
	return lines
}

// Shows says what the model would see, in a line.
func (l Line) Shows() string {
	if l.Example != "" {
		return l.Example
	}
	return "(" + l.Says + ")"
}
