package episode

import "slices"

// The types of a Part.
const (
	PartText  = "text"
	PartImage = "image"
	PartFile  = "file"  // a sound or another file of a tool, which models are not shown
	PartVideo = "video" // for a vision model alone
)

// Part is a piece of a message: an image, or a text whose place among images matters.
type Part struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// SHA256 names the bytes of an image as the model gets them, in hexadecimal digits. They lie beside the run.
	SHA256 string `json:"sha256,omitempty"`
	MIME   string `json:"mime,omitempty"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
	// Original names the bytes that the image was made of, if those are others.
	Original string `json:"original,omitempty"`

	// Data is an image that has not been prepared and kept yet, as a dataset has it. It is never written.
	Data []byte `json:"-"`
}

// Ordered is the message as a list: its text and its images in the order in which the model gets them. Where no part is a text, the
// message's own text comes first.
func (m *Message) Ordered() []Part {
	for i := range m.Parts {
		if m.Parts[i].Type == PartText {
			return m.Parts
		}
	}
	if m.Content == "" {
		return m.Parts
	}
	return append([]Part{{Type: PartText, Text: m.Content}}, m.Parts...)
}

// Images are the message's images, in their order.
func (m *Message) Images() (all []Part) {
	for _, part := range m.Parts {
		if part.Type == PartImage {
			all = append(all, part)
		}
	}
	return all
}

// Shown are the images that models saw in a call: the agent's, or one that its tool asked.
func (c *ToolCall) Shown() []Part {
	all := slices.Clone(c.Images)
	for _, q := range c.Inquiries() {
		if q.Image != nil {
			all = append(all, *q.Image)
		}
	}
	return all
}

// Images are the images of an episode and its subagents, each once, as they first come up: of tasks, messages and calls.
func (ep *Episode) Images() (all []Part) {
	known := map[string]bool{}
	add := func(parts []Part) {
		for _, part := range parts {
			if part.Type == PartImage && !known[part.SHA256] {
				known[part.SHA256] = true
				all = append(all, part)
			}
		}
	}
	for each := range ep.Tree() {
		for _, messages := range [][]Message{each.Task.Prompt, each.Messages} {
			for i := range messages {
				add(messages[i].Parts)
			}
		}
		for i := range each.Calls {
			add(each.Calls[i].Shown())
		}
	}
	return all
}
