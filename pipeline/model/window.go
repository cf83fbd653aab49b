package model

import (
	"encoding/json"
	"strings"
)

// Window is how many tokens the model's prompt and reply may have together, from Config or else from the server; 0 if unknown.
// Probe asks the server.
func (c *Client) Window() int {
	if c.cfg.Window > 0 {
		return c.cfg.Window
	}
	return int(c.window.Load())
}

// narrow records an endpoint's window: the smallest of all endpoints counts.
func (c *Client) narrow(window int) {
	if known := c.window.Load(); window > 0 && (known == 0 || int64(window) < known) {
		c.window.Store(int64(window))
	}
}

// windowOf reads the window from a server's description of a model; of several values the least.
func windowOf(card json.RawMessage) (least int) {
	for _, s := range servers {
		for _, path := range s.window {
			raw, n := card, 0.0
			for name := range strings.SplitSeq(path, ".") {
				raw = field(raw, name)
			}
			if json.Unmarshal(raw, &n) == nil && n >= 1 && n < 1<<31 && (least == 0 || int(n) < least) {
				least = int(n)
			}
		}
	}
	return least
}
