package rollout

import (
	"encoding/json"
	"fmt"

	"trajgen/pipeline/episode"
)

// drop leaves out the results of tools, the oldest first, until the conversation is short enough. The last turns' stay.
func (f *fitter) drop(c *episode.Compaction, target int) error {
	messages, saved := f.ep.Messages, 0
	gone := map[int]bool{}
	for _, earlier := range f.ep.Compactions {
		for _, r := range earlier.Replaced {
			gone[r.Message] = true
		}
	}
	ratio := f.talk.Counter.Ratio()
	for i := range messages[:f.tail()] {
		m := &messages[i]
		if m.Role != "tool" || gone[i] {
			continue
		}
		placeholder := dropped(m)
		if len(placeholder) >= len(m.Content) {
			continue
		}
		c.Replaced = append(c.Replaced, episode.Replacement{Message: i, Content: placeholder})
		saved += len(m.Content) - len(placeholder)
		if c.Before-int(float64(saved)*ratio) < target {
			break
		}
	}
	if len(c.Replaced) == 0 {
		return errIncompressible
	}
	return nil
}

// dropped is what stands for a result that was left out.
func dropped(m *episode.Message) string {
	text, err := json.Marshal(map[string]string{"dropped": fmt.Sprintf(
		"this result of %s (%d bytes) was left out to save room; call the tool again if it is needed", m.Name, len(m.Content))})
	if err != nil { // not of strings
		panic(err)
	}
	return string(text)
}
