package run

import (
	"fmt"
	"strings"
	"testing"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/budget"
	"trajgen/pipeline/rollout"
	"trajgen/tools/rl"
)

// TestEpisodeBudgetNeedsAllPrices: whoever may answer in an episode is part of what it costs.
func TestEpisodeBudgetNeedsAllPrices(t *testing.T) {
	known := episode.Prices{"m": {Input: 1, Output: 2}}
	for _, f := range []File{
		{Model: model.Settings{Name: "m", Fallbacks: []model.Fallback{{Model: "spare"}}}},
		{Sweep: Sweep{Model: []sweptModel{{Name: "m"}, {Name: "spare"}}}},
		{Model: model.Settings{Name: "m"}, Context: rollout.ContextSettings{SummaryModel: "spare"}},
	} {
		f.Limits.USD, f.Budget.Prices, f.Out = 1, known, t.TempDir()
		e := purse{opened: &opened{File: f}}
		if err := e.openBudget(t.Context()); err == nil || !strings.Contains(err.Error(), "price of spare") || strings.Contains(err.Error(), "price of m:") {
			t.Errorf("openBudget = %v, want one about the price of spare alone", err)
		}
	}
}

// TestReplyBound holds that the longest reply is known as it is asked for, whichever key of the run file says so.
func TestReplyBound(t *testing.T) {
	client, err := model.Open(model.Config{Settings: model.Settings{Name: "m", BaseURL: "http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for _, tt := range []struct {
		name string
		give model.Settings
		want int
	}{
		{"the flag", model.Settings{MaxTokens: 100}, 100},
		{"nothing", model.Settings{}, 0},
		{"an extra field", model.Settings{ExtraBody: map[string]any{"max_tokens": 200}}, 200},
		{"an extra field of the other name", model.Settings{MaxTokens: 100, ExtraBody: map[string]any{"max_completion_tokens": 300}}, 300},
		{"taken out", model.Settings{MaxTokens: 100, ExtraBody: map[string]any{"max_tokens": nil}}, 0},
		{"taken out for the other name", model.Settings{MaxTokens: 100, ExtraBody: map[string]any{"max_completion_tokens": nil, "max_tokens": 50}}, 50},
		{"taken out of nothing", model.Settings{MaxTokens: 100, MaxTokensField: "max_tokens", ExtraBody: map[string]any{"max_completion_tokens": nil}}, 100},
	} {
		file := File{Model: tt.give, Budget: budget.Settings{Tokens: 1000}}
		e := models{opened: &opened{File: file}, sampling: samplingOf(file.Model, "m"), clients: []*model.Client{client}}
		if got := e.context().Reply; got != tt.want {
			t.Errorf("%s: the longest reply has %d tokens, want %d", tt.name, got, tt.want)
		}
		if err := e.bounded(); (err == nil) != (tt.want > 0) {
			t.Errorf("%s: bounded() = %v with %d tokens", tt.name, err, tt.want)
		}
	}
}

// TestBudgetOfTests holds that a run with a budget knows what each test of a model may use, and its price.
func TestBudgetOfTests(t *testing.T) {
	for _, tt := range []struct {
		tokens int
		prices episode.Prices
		want   string
	}{
		{0, episode.Prices{"m": {Output: 1}, "tried": {Output: 1}}, "rl: {models: {mine: {tokens: N}}}"},
		{100, episode.Prices{"m": {Output: 1}}, "price of tried"},
		{100, episode.Prices{"m": {Output: 1}, "tried": {Output: 1}}, ""},
	} {
		f := File{Model: model.Settings{Name: "m"}, Families: Families{
			RL: rl.Settings{Models: map[string]rl.Model{"mine": {Name: "tried", Tokens: tt.tokens}}},
		}}
		f.Budget.USD, f.Budget.Prices, f.Out = 1, tt.prices, t.TempDir()
		e := purse{opened: &opened{File: f}}
		if err := e.openBudget(t.Context()); fmt.Sprint(err) != "<nil>" && tt.want == "" || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("tokens %d: %v, want %q", tt.tokens, err, tt.want)
		}
	}
}
