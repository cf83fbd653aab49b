package model

import (
	"net/http"
	"testing"
	"time"

	"trajgen/pipeline/model/gate"
)

// TestHeaderBudget is inside the package: what a header comes to shows outside only in how long requests wait.
func TestHeaderBudget(t *testing.T) {
	const date = "Tue, 01 Jan 2019 00:00:00 GMT" // 1546300800
	tests := []struct {
		name             string
		header           map[string]string
		requests, tokens gate.Budget
	}{
		{"OpenAI", map[string]string{
			"X-Ratelimit-Limit-Requests": "60", "X-Ratelimit-Remaining-Requests": "59", "X-Ratelimit-Reset-Requests": "1s",
			"X-Ratelimit-Limit-Tokens": "150000", "X-Ratelimit-Remaining-Tokens": "149984", "X-Ratelimit-Reset-Tokens": "6m0.5s",
		}, gate.Budget{Limit: 60, Remaining: 59, Reset: time.Second}, gate.Budget{Limit: 150000, Remaining: 149984, Reset: 6*time.Minute + 500*time.Millisecond}},
		{"Anthropic", map[string]string{
			"Date": date, "Anthropic-Ratelimit-Requests-Limit": "50", "Anthropic-Ratelimit-Requests-Remaining": "49",
			"Anthropic-Ratelimit-Requests-Reset":         "2019-01-01T00:00:02Z",
			"Anthropic-Ratelimit-Input-Tokens-Limit":     "1000",
			"Anthropic-Ratelimit-Input-Tokens-Reset":     "2019-01-01T00:01:00Z",
			"Anthropic-Ratelimit-Input-Tokens-Remaining": "10",
		}, gate.Budget{Limit: 50, Remaining: 49, Reset: 2 * time.Second}, gate.Budget{Limit: 1000, Remaining: 10, Reset: time.Minute}},
		{"OpenRouter", map[string]string{
			"Date": date, "X-Ratelimit-Limit": "20", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1546300830000",
		}, gate.Budget{Limit: 20, Reset: 30 * time.Second}, gate.Budget{}},
		{"IETF", map[string]string{"Ratelimit-Limit": "100, 100;w=60", "Ratelimit-Remaining": "7", "Ratelimit-Reset": "30"},
			gate.Budget{Limit: 100, Remaining: 7, Reset: 30 * time.Second}, gate.Budget{}},
		{"a moment without a clock", map[string]string{"X-Ratelimit-Limit": "20", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1546300830"}, gate.Budget{}, gate.Budget{}},
		{"Azure says half of it", map[string]string{"X-Ratelimit-Remaining-Requests": "5"}, gate.Budget{}, gate.Budget{}},
		{"nonsense", map[string]string{"X-Ratelimit-Limit": "NaN", "X-Ratelimit-Remaining": "-1", "X-Ratelimit-Reset": "1e300"}, gate.Budget{}, gate.Budget{}},
		{"more than all", map[string]string{"X-Ratelimit-Limit": "5", "X-Ratelimit-Remaining": "6", "X-Ratelimit-Reset": "1"}, gate.Budget{}, gate.Budget{}},
		{"none", nil, gate.Budget{}, gate.Budget{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			for name, value := range tt.header {
				h.Set(name, value)
			}
			if got := headerBudget(h, requestHeaders); got != tt.requests {
				t.Errorf("requests = %+v, want %+v", got, tt.requests)
			}
			if got := headerBudget(h, tokenHeaders); got != tt.tokens {
				t.Errorf("tokens = %+v, want %+v", got, tt.tokens)
			}
		})
	}
}
