package episode

import (
	"strconv"
	"strings"
)

// Sampling is how the model was asked for an episode's turns. What is absent was left to the server.
type Sampling struct {
	Model           string   `json:"model,omitempty"` // as it was asked for; Episode.Model is the name that the server gave
	ReasoningEffort string   `json:"reasoning_effort,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	TopP            *float64 `json:"top_p,omitempty"`
	MaxTokens       int      `json:"max_tokens,omitempty"` // of one reply
}

// Values are the settings by name, those that are absent as "". The order is always the same.
func (s Sampling) Values() [][2]string {
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	limit := ""
	if s.MaxTokens > 0 {
		limit = strconv.Itoa(s.MaxTokens)
	}
	return [][2]string{
		{"model", s.Model}, {"reasoning_effort", s.ReasoningEffort}, {"temperature", number(s.Temperature)},
		{"top_p", number(s.TopP)}, {"max_tokens", limit},
	}
}

// String names the settings that are there.
func (s Sampling) String() string {
	var parts []string
	for _, value := range s.Values() {
		if value[1] != "" {
			parts = append(parts, value[0]+"="+value[1])
		}
	}
	return strings.Join(parts, " ")
}
