package episode

import (
	"bytes"
	"encoding/json"
)

// Inquiry is a request that a tool made to a model, or to a provider that made something. The source of its call has it in the
// list "asked".
type Inquiry struct {
	Role   string `json:"role"`            // of the model in the run
	Asked  string `json:"asked"`           // the model's name as the run has it
	Model  string `json:"model,omitempty"` // the name that its server gave
	Prompt string `json:"prompt_sha256"`   // of the instructions
	Text   string `json:"text_sha256"`     // of what it was given besides
	Image  *Part  `json:"image,omitempty"` // that it was shown
	// Usage is nil when there was no answer. The agent's own does not include it.
	Usage   *Usage   `json:"usage,omitempty"`
	CostUSD *float64 `json:"cost_usd,omitempty"` // by the run's prices; nil when it is not known
	Failed  string   `json:"failed,omitempty"`   // class of the error
}

// Inquiries are the requests that the call made to models.
func (c *ToolCall) Inquiries() []Inquiry {
	if !bytes.Contains(c.Source, []byte(`"asked":[`)) {
		return nil
	}
	var source struct{ Asked []Inquiry }
	if json.Unmarshal(c.Source, &source) != nil { // another tool's, which means something else by it
		return nil
	}
	return source.Asked
}

// Inquired calls f for each request of the episode's tools that a model answered, with the names under which it is paid for.
func (ep *Episode) Inquired(f func(u Usage, names ...string)) {
	for i := range ep.Calls {
		for _, q := range ep.Calls[i].Inquiries() {
			if q.Usage != nil {
				f(*q.Usage, q.Model, q.Asked)
			}
		}
	}
}
