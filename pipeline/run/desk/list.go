package desk

import (
	"cmp"

	"trajgen/registry"
)

// ToolLine is a tool, and whether it can be used.
type ToolLine struct {
	Name        string `json:"name"`
	Toolset     string `json:"toolset"`
	Description string `json:"description"`
	Available   bool   `json:"available"`
	Reason      string `json:"reason,omitempty"`
	Planned     bool   `json:"planned,omitempty"` // it is known by its name alone
	// RequiresEnv names what the environment of this command must hold.
	RequiresEnv    []string `json:"requires_env"`
	MaxResultBytes int      `json:"max_result_bytes"`
	TimeoutSeconds float64  `json:"timeout_s"`
}

// Tools are the tools of the box.
func (t *Toolbox) Tools() ([]ToolLine, error) {
	set, err := t.Registry.Select(nil, nil)
	if err != nil {
		return nil, err
	}
	unavailable := set.Missing()
	lines := []ToolLine{}
	for _, tool := range t.Registry.Tools() {
		reason, missing := unavailable[tool.Name]
		lines = append(lines, ToolLine{
			Name: tool.Name, Toolset: tool.Toolset, Description: tool.Description,
			Available: !missing, Reason: reason, Planned: tool.Planned(), RequiresEnv: append([]string{}, tool.RequiresEnv...),
			MaxResultBytes: cmp.Or(tool.MaxResult, registry.DefaultMaxResult),
			TimeoutSeconds: cmp.Or(tool.Timeout, registry.DefaultTimeout).Seconds(),
		})
	}
	return lines, nil
}

// ToolsetLine is a toolset, and which of its tools can be used.
type ToolsetLine struct {
	registry.ToolsetInfo
	Available      bool              `json:"available"` // with one of its tools at least
	AvailableTools []string          `json:"available_tools"`
	Unavailable    map[string]string `json:"unavailable_tools"` // and why
}

func newToolsetLine(set registry.ToolsetInfo, unavailable map[string]string) ToolsetLine {
	line := ToolsetLine{ToolsetInfo: set, AvailableTools: []string{}, Unavailable: map[string]string{}}
	for _, name := range set.Resolved {
		if reason, ok := unavailable[name]; ok {
			line.Unavailable[name] = reason
		} else {
			line.AvailableTools = append(line.AvailableTools, name)
		}
	}
	line.Available = len(line.AvailableTools) > 0
	return line
}

// Toolsets are the toolsets of the box.
func (t *Toolbox) Toolsets() ([]ToolsetLine, error) {
	all, err := t.Registry.Select(nil, nil)
	if err != nil {
		return nil, err
	}
	unavailable := all.Missing()
	lines := []ToolsetLine{}
	for _, set := range t.Registry.Toolsets() {
		lines = append(lines, newToolsetLine(set, unavailable))
	}
	return lines, nil
}
