package model

import "encoding/json"

var openRouter = server{
	name: "openrouter", hosts: []string{"openrouter.ai", ".openrouter.ai"}, details: true,
	window: []string{"context_length", "top_provider.context_length"},
	says: words{
		ClassQuota:         {"requires more credits"},
		ClassContentPolicy: {"was flagged", "moderation"},
	},
	reply:  func(d *draft, r *wireReply) { setWord(&d.service.Provider, r.Provider) },
	choice: func(d *draft, c *wireChoice) { setWord(&d.service.NativeFinishReason, c.NativeFinishReason) },
	problem: func(p *problem, fields map[string]json.RawMessage) {
		if raw := providerSaid(fields["metadata"]); raw != "" {
			p.Message += ": " + raw
		}
	},
}

// providerSaid is the error of the provider behind OpenRouter, whose own message is always "Provider returned error".
func providerSaid(raw json.RawMessage) string {
	var metadata struct {
		Raw  json.RawMessage `json:"raw"`
		Name string          `json:"provider_name"`
	}
	if !present(raw) || json.Unmarshal(raw, &metadata) != nil || !present(metadata.Raw) {
		return ""
	}
	said := text(metadata.Raw)
	if said == "" {
		said = string(metadata.Raw)
	}
	if inner := parseNested([]byte(said), deepest); json.Valid([]byte(said)) && inner.Message != "" {
		said = inner.Message
	}
	if metadata.Name != "" {
		return metadata.Name + ": " + said
	}
	return said
}
