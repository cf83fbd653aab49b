package episode

import (
	"strconv"
	"strings"
)

// Sampling has the sampling settings of an episode's turns. Absent ones were left to the server.
type Sampling struct {
	Model           string   `json:"model,omitempty"` // the requested name; Episode.Model is the server's
	ReasoningEffort string   `json:"reasoning_effort,omitempty"`
	Temperature     *float64 `json:"temperature,omitempty"`
	TopP            *float64 `json:"top_p,omitempty"`
	MaxTokens       int      `json:"max_tokens,omitempty"` // of one reply
}

// Values are the settings by name, absent ones as "". The order is always the same.
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

// String lists the settings that are present.
func (s Sampling) String() string {
	var parts []string
	for _, value := range s.Values() {
		if value[1] != "" {
			parts = append(parts, value[0]+"="+value[1])
		}
	}
	return strings.Join(parts, " ")
}
