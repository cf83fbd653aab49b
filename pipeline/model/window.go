package model

import "encoding/json"

// Window is how many tokens the model's prompt and reply may have together, as Config or else the server says; 0 when
// neither does. The server is asked by Probe.
func (c *Client) Window() int {
	if c.cfg.Window > 0 {
		return c.cfg.Window
	}
	return int(c.window.Load())
}

// narrow takes note of an endpoint's window: of several the smallest counts.
func (c *Client) narrow(window int) {
	if known := c.window.Load(); window > 0 && (known == 0 || int64(window) < known) {
		c.window.Store(int64(window))
	}
}

// windowOf reads the window from a server's description of a model.
func windowOf(raw json.RawMessage) int {
	var card map[string]json.RawMessage
	json.Unmarshal(raw, &card)
	least := 0
	for _, field := range []struct {
		in    string // an object in the description
		names []string
	}{
		// vLLM and SGLang; OpenRouter and Together; Groq; Mistral; LM Studio.
		{"", []string{"max_model_len", "context_length", "context_window", "max_context_length", "loaded_context_length"}},
		{"meta", []string{"n_ctx"}}, // llama.cpp
		{"top_provider", []string{"context_length"}},
	} {
		fields := card
		if field.in != "" {
			fields = nil
			json.Unmarshal(card[field.in], &fields)
		}
		for _, name := range field.names {
			var n float64
			if json.Unmarshal(fields[name], &n) == nil && n >= 1 && n < 1<<31 && (least == 0 || int(n) < least) {
				least = int(n)
			}
		}
	}
	return least
}
