package rollout

import (
	"encoding/json"
	"fmt"
	"slices"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
)

// drop leaves out what tools showed and said until the conversation is short enough: images before results, and of each the oldest
// first. The last turns' stay.
func (f *fitter) drop(c *episode.Compaction, target int) error {
	messages, saved, seen := f.ep.Messages, 0, 0 // bytes, and tokens of images
	gone := map[int]bool{}
	for _, earlier := range f.ep.Compactions {
		for _, r := range earlier.Replaced {
			gone[r.Message] = true
		}
	}
	ratio := f.talk.Counter.Ratio()
	enough := func() bool { return c.Before-int(float64(saved)*ratio)-seen < target }
	for i := range messages[:f.tail()] {
		m := &messages[i]
		images := m.Images()
		if len(images) == 0 || !m.Harness || gone[i] || enough() {
			continue
		}
		r := episode.Replacement{Message: i, Content: fmt.Sprintf("[images that were shown here were left out to save room: %d]", len(images))}
		c.Replaced = append(c.Replaced, r)
		saved += len(m.Content) - len(r.Content)
		for _, image := range images {
			seen += model.ImageTokens(image)
		}
	}
	for i := range messages[:f.tail()] {
		m := &messages[i]
		if m.Role != "tool" || gone[i] {
			continue
		}
		if len(c.Replaced) > 0 && enough() {
			break
		}
		placeholder := dropped(m)
		if len(placeholder) >= len(m.Content) {
			continue
		}
		c.Replaced = append(c.Replaced, episode.Replacement{Message: i, Content: placeholder})
		saved += len(m.Content) - len(placeholder)
	}
	slices.SortFunc(c.Replaced, func(a, b episode.Replacement) int { return a.Message - b.Message })
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
