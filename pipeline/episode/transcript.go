package episode

import (
	"fmt"
	"strings"
)

// leastPiece is how many bytes of one message a transcript has at least.
const leastPiece = 200

// Transcript puts messages down, for a model that writes a summary, in at most so many bytes; the longest are cut first.
func Transcript(messages []Message, most int) string {
	for piece := most; ; piece /= 2 {
		text := written(messages, piece)
		if len(text) <= most || piece <= leastPiece {
			return Head(text, most)
		}
	}
}

func written(messages []Message, piece int) string {
	var text strings.Builder
	for i := range messages {
		m := &messages[i]
		if m.Role == "tool" {
			fmt.Fprintf(&text, "## Result of %s\n", ends(m.Name, leastPiece))
		} else {
			fmt.Fprintf(&text, "## The %s\n", m.Role)
		}
		if m.Content != "" {
			text.WriteString(ends(m.Content, piece) + "\n")
		}
		for _, image := range m.Images() {
			fmt.Fprintf(&text, "[an image of %d by %d pixels]\n", image.Width, image.Height)
		}
		for _, call := range m.Calls {
			fmt.Fprintf(&text, "calls %s with %s\n", ends(call.Name, leastPiece), ends(call.Arguments, piece))
		}
		text.WriteString("\n")
	}
	return text.String()
}

// ends keeps the beginning and the end of a text that is longer than most bytes.
func ends(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s\n[%d bytes left out]\n%s", Head(text, most/2), len(text)-2*(most/2),
		strings.ToValidUTF8(text[len(text)-most/2:], ""))
}

// Head is the beginning of a text in at most so many bytes, without a part of a character.
func Head(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most, 0)], "")
}
