package run

import (
	"testing"

	"trajgen/pipeline/model"
)

// TestBaseURLByDefault holds what the help says of it.
func TestBaseURLByDefault(t *testing.T) {
	for _, tt := range []struct {
		give File
		want string
	}{
		{File{}, "https://api.openai.com/v1"},
		{File{Model: model.Settings{BaseURL: "http://a/v1"}}, "http://a/v1"},
		{File{Model: model.Settings{Endpoints: []string{"http://b/v1", "http://c/v1"}}}, "http://b/v1"},
	} {
		if got := baseURL(tt.give.Model); got != tt.want {
			t.Errorf("base URL of %q and %q = %s, want %s", tt.give.Model.BaseURL, tt.give.Model.Endpoints, got, tt.want)
		}
	}
}

// TestSamplingOfExtraFields holds that the row knows settings that come as fields of the body.
func TestSamplingOfExtraFields(t *testing.T) {
	warm := 0.9
	for _, tt := range []struct {
		give model.Settings
		want string
	}{
		{model.Settings{Temperature: &warm, MaxTokens: 7, ReasoningEffort: "low"}, "model=m reasoning_effort=low temperature=0.9 max_tokens=7"},
		{model.Settings{Temperature: &warm, ReasoningEffort: "low", ExtraBody: map[string]any{"temperature": nil, "reasoning_effort": nil}}, "model=m"},
		{model.Settings{ExtraBody: map[string]any{"temperature": 0, "top_p": 0.5, "max_completion_tokens": 9, "reasoning_effort": "high", "min_p": 0.1}},
			"model=m reasoning_effort=high temperature=0 top_p=0.5 max_tokens=9"},
		{model.Settings{ExtraBody: map[string]any{"temperature": "hot", "reasoning_effort": 3}}, "model=m"},
	} {
		if got := samplingOf(tt.give, "m").String(); got != tt.want {
			t.Errorf("sampling of %v is %q, want %q", tt.give.ExtraBody, got, tt.want)
		}
	}
}
