package model

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestServers is inside the package, as it ranges over the servers that are known: whoever adds one sees that what it says
// is understood.
func TestServers(t *testing.T) {
	if !slices.IsSortedFunc(servers, func(a, b *server) int { return strings.Compare(a.name, b.name) }) {
		t.Error("the servers are not in the order of their names, in which errors list them")
	}
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			for class, all := range s.says {
				for _, word := range all {
					if got, _ := classify(400, problem{Message: "Error: " + strings.ToUpper(word)}); got != class {
						t.Errorf("%q is taken for %s, want %s", word, got, class)
					}
				}
			}
			for _, path := range s.window {
				var card any = 4096
				names := strings.Split(path, ".")
				for _, name := range slices.Backward(names) {
					card = map[string]any{name: card}
				}
				if raw, _ := json.Marshal(card); windowOf(raw) != 4096 {
					t.Errorf("the window of %s = %d, want 4096", raw, windowOf(raw))
				}
			}
			for _, host := range s.hosts {
				if host[0] == '.' {
					host = "a" + host
				}
				if !s.at("https://"+host+"/v1") || s.at("https://"+host+".example.com/v1") {
					t.Errorf("%s is not told from other hosts", host)
				}
			}
			if s.tokens != nil && !slices.Equal(Config{Settings: Settings{TokenIDs: s.name}}.asksFor(), s.tokens) {
				t.Errorf("it is asked for token ids by %q, want %q", Config{Settings: Settings{TokenIDs: s.name}}.asksFor(), s.tokens)
			}
			if s.problem != nil {
				p := problem{Message: "m"}
				s.problem(&p, map[string]json.RawMessage{"details": json.RawMessage("7"), "metadata": json.RawMessage(`{"raw":{}}`), "status": json.RawMessage("[]")})
				if !strings.HasPrefix(p.Message, "m") {
					t.Errorf("of an odd error it makes the message %q", p.Message)
				}
			}
		})
	}
}
