package episode

// The strategies for a conversation that no longer fits the model's window.
const (
	CompactStop      = "stop"      // do not shorten it: the episode ends at its limit
	CompactDrop      = "drop"      // leave out the oldest results of tools
	CompactSummarize = "summarize" // replace the middle by a model's summary
)

// Compaction is one shortening of the conversation that the model is sent. Episode.Messages keeps all messages; Sent applies
// the compactions to them.
type Compaction struct {
	Turn     int    `json:"turn"` // the first turn with the shorter conversation
	Strategy string `json:"strategy"`
	// Refused says that the server refused the conversation as too long; otherwise it came near the window's end.
	Refused bool `json:"refused,omitempty"`
	// Before and After are tokens of the prompt: the server counted as many as Counted says, and the rest is estimated.
	Before  int `json:"before"`
	After   int `json:"after"`
	Counted int `json:"counted,omitempty"`

	Replaced []Replacement `json:"replaced,omitempty"`
	// Messages From up to To are not sent; Summary, the content of a user message, stands in their place.
	From    int    `json:"from,omitempty"`
	To      int    `json:"to,omitempty"`
	Summary string `json:"summary,omitempty"`
	Model   string `json:"model,omitempty"` // the model that wrote the summary, by the server's name
	Asked   string `json:"asked,omitempty"` // that model, by the run's name
	Usage   *Usage `json:"usage,omitempty"` // of that model; not part of the agent's

	// Failed is why the conversation could not be shortened, or has no summary. It is then unchanged; if it did not fit any more,
	// the episode ended.
	Failed string `json:"failed,omitempty"`
}

// Replacement is the content that is sent for a message instead of its own and its images.
type Replacement struct {
	Message int    `json:"message"` // index in Episode.Messages
	Content string `json:"content"`
}

// Sent is the conversation exactly as it was sent to the model for a turn.
func (ep *Episode) Sent(turn int) []Message {
	return Shortened(ep.Messages[:ep.Turns[turn].Message], ep.Compactions, turn)
}

// Shortened applies the compactions up to a turn to a conversation. Without any it returns the conversation itself.
func Shortened(messages []Message, compactions []Compaction, turn int) []Message {
	contents := map[int]string{}
	from, to, summary := 0, 0, ""
	for i := range compactions {
		c := &compactions[i]
		if c.Turn > turn {
			break
		}
		for _, r := range c.Replaced {
			contents[r.Message] = r.Content
		}
		if c.To > c.From { // a later summary includes the earlier one
			from, to, summary = c.From, c.To, c.Summary
		}
	}
	if len(contents) == 0 && to == from {
		return messages
	}
	sent := make([]Message, 0, len(messages))
	for i, message := range messages {
		if i == from && to > from {
			sent = append(sent, Message{Role: "user", Content: summary, Harness: true})
		}
		if i >= from && i < to {
			continue
		}
		if content, ok := contents[i]; ok {
			message.Content, message.Parts, message.Harness = content, nil, true
		}
		sent = append(sent, message)
	}
	return sent
}
