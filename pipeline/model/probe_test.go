package model_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/scripted"
)

func TestProbe(t *testing.T) {
	down := "http://127.0.0.1:1/v1" // nothing listens on port 1
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("vendor/model-%d", i))
	}
	many = append(many, "qwen/qwen3-8b")
	tests := []struct {
		name  string
		cfg   model.Config
		class string // empty: the probe passes
		want  []string
	}{
		{"listed", model.Config{Settings: model.Settings{Name: "scripted", BaseURL: play(t, scripted.Config{Policy: scripted.Noop})}}, "", nil},
		{"down", model.Config{Settings: model.Settings{BaseURL: down}}, model.ClassConnection, []string{"cannot reach " + down, "connection refused", "is the server running"}},
		{"no key", model.Config{Settings: model.Settings{Name: "scripted", BaseURL: play(t, scripted.Config{Policy: scripted.Noop, APIKey: "right-key"})}},
			model.ClassAuth, []string{"wants an API key and none is set"}},
		{"wrong key", model.Config{Settings: model.Settings{Name: "scripted", BaseURL: play(t, scripted.Config{Policy: scripted.Noop, APIKey: "right-key"})}, APIKey: "wrong-key"},
			model.ClassAuth, []string{"wants another API key"}},
		{"right key", model.Config{Settings: model.Settings{Name: "scripted", BaseURL: play(t, scripted.Config{Policy: scripted.Noop, APIKey: "right-key"})}, APIKey: "right-key"}, "", nil},
		{"unknown model", model.Config{Settings: model.Settings{Name: "scripte", BaseURL: play(t, scripted.Config{Policy: scripted.Noop})}},
			model.ClassModelNotFound, []string{`does not serve model "scripte"`, "it has scripted"}},
		{"unknown among many", model.Config{Settings: model.Settings{Name: "qwen3-80b", BaseURL: server(t, many, "")}},
			model.ClassModelNotFound, []string{"it has qwen/qwen3-8b, vendor/model-0", "and 21 more"}},
		{"alias that is not listed", model.Config{Settings: model.Settings{Name: "alias", BaseURL: server(t, many, "alias")}}, "", nil},
		{"no list, model there", model.Config{Settings: model.Settings{Name: "alias", BaseURL: server(t, nil, "alias")}}, "", nil},
		{"no list, model not there", model.Config{Settings: model.Settings{Name: "other", BaseURL: server(t, nil, "alias")}},
			model.ClassModelNotFound, []string{"lists no models", "is the base URL right"}},
		{"wrong path", model.Config{Settings: model.Settings{Name: "m", BaseURL: says(t, 404, "404 page not found")}}, model.ClassModelNotFound, []string{"404 page not found", "is the base URL right"}},
		{"no credit", model.Config{Settings: model.Settings{Name: "m", BaseURL: says(t, 429, `{"error":{"message":"pay up","code":"insufficient_quota"}}`)}},
			model.ClassQuota, []string{"no credit left", "pay up"}},
		{"redirect", model.Config{Settings: model.Settings{Name: "m", BaseURL: endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://new.example/v1", http.StatusMovedPermanently)
		})}}, model.ClassModelNotFound, []string{"redirects to https://new.example/v1"}},
		{"one token is too little to think", model.Config{Settings: model.Settings{Name: "m", BaseURL: says(t, 400, `{"error":{"message":"Could not finish the message because max_tokens or model output limit was reached."}}`)}}, "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := open(t, tt.cfg).Probe(t.Context())
			if tt.class == "" {
				if err != nil {
					t.Errorf("Probe() = %v, want nil", err)
				}
				return
			}
			e := asError(t, err)
			if e.Class != tt.class {
				t.Errorf("Probe() = %v, want class %s", err, tt.class)
			}
			for _, part := range tt.want {
				if !strings.Contains(e.Message, part) {
					t.Errorf("Probe() = %q, want it to contain %q", e.Message, part)
				}
			}
			if strings.Contains(e.Message, "\n") || strings.Contains(e.Message, "-key") {
				t.Errorf("Probe() = %q, want one line without the key", e.Message)
			}
		})
	}
}

// server lists some models (nil: offers no list) and completes for one of any name.
func server(t *testing.T, list []string, completes string) string {
	return endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			if list == nil {
				http.NotFound(w, r)
				return
			}
			var cards []map[string]any
			for _, id := range list {
				cards = append(cards, map[string]any{"id": id, "created": "not a number"})
			}
			json.NewEncoder(w).Encode(map[string]any{"data": cards})
			return
		}
		var req struct {
			Model     string `json:"model"`
			MaxTokens int    `json:"max_tokens"`
		}
		json.NewDecoder(r.Body).Decode(&req)
		if req.Model != completes || req.MaxTokens != 1 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":"model %q not found"}}`, req.Model)
			return
		}
		io.WriteString(w, `{"choices":[{"message":{"content":"yes"},"finish_reason":"length"}]}`)
	})
}

// TestProbeOfSeveral has two endpoints of which one does not serve the model: half of all requests would fail.
func TestProbeOfSeveral(t *testing.T) {
	serving := func(names string) string {
		return endpoint(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/chat/completions") {
				w.WriteHeader(http.StatusNotFound)
				io.WriteString(w, `{"error":{"message":"The model does not exist.","code":"model_not_found"}}`)
				return
			}
			io.WriteString(w, `{"data":[`+names+`]}`)
		})
	}
	good, bad := serving(`{"id":"m"}`), serving(`{"id":"other"}`)
	err := open(t, model.Config{Settings: model.Settings{Name: "m", Endpoints: []string{good, bad}}}).Probe(t.Context())
	if e := asError(t, err); e.Class != model.ClassModelNotFound || !strings.Contains(e.Message, bad) || !strings.Contains(e.Message, "it has other") {
		t.Errorf("Probe() = %v, want one that names %s and what it has", e, bad)
	}
	if err := open(t, model.Config{Settings: model.Settings{Name: "m", Endpoints: []string{good, serving(`{"id":"m"}`)}}}).Probe(t.Context()); err != nil {
		t.Errorf("Probe() of two that serve it = %v", err)
	}
}
