package export

import (
	"encoding/base64"
	"slices"

	"trajgen/pipeline/episode"
)

// imaging is what a format makes of images.
type imaging int

const (
	imageless imaging = iota // it has no place for them
	inlined                  // they can stand in its messages
	named                    // its rows name them
)

const (
	noteNoImages  = "episodes whose images were left out, as the format has no place for them"
	noteNotInline = "episodes whose images were left out (--inline-media puts them in)"

	refuseMissing = "an image that is missing"
)

// pictured is an episode as a format takes it: with the bytes of its images, or without them. The one that is given stays as it is.
func (s *Sink) pictured(ep *episode.Episode) (*episode.Episode, error) {
	if s.imaging == named || !slices.ContainsFunc(ep.Messages, func(m episode.Message) bool { return len(m.Parts) > 0 }) {
		return ep, nil
	}
	inline := s.imaging == inlined && s.options.Inline
	made := *ep
	made.Messages = slices.Clone(ep.Messages)
	for i := range made.Messages {
		m := &made.Messages[i]
		if !inline {
			m.Parts = nil
			continue
		}
		m.Parts = slices.Clone(m.Parts)
		for j := range m.Parts {
			part := &m.Parts[j]
			if part.Type != episode.PartImage {
				continue
			}
			var err error
			if s.options.Images != nil {
				part.Data, err = s.options.Images(part.SHA256)
			}
			if err != nil || part.Data == nil {
				return nil, &Refusal{refuseMissing}
			}
		}
	}
	return &made, nil
}

// remarkImages notes images that are not in what was written.
func (s *Sink) remarkImages(ep *episode.Episode) {
	switch {
	case s.imaging == named || s.imaging == inlined && s.options.Inline || len(ep.Images()) == 0:
	case s.imaging == inlined:
		s.lost[noteNotInline]++
	default:
		s.lost[noteNoImages]++
	}
}

// content is what a message says: a text, or a list of texts and images where it has images. Formats write those in their own ways.
func content(m *episode.Message, text func(string) object, image func(url string, part *episode.Part) object) any {
	if len(m.Images()) == 0 {
		return m.Content
	}
	var list []object
	for _, part := range m.Ordered() {
		if part.Type == episode.PartImage {
			list = append(list, image("data:"+part.MIME+";base64,"+base64.StdEncoding.EncodeToString(part.Data), &part))
		} else {
			list = append(list, text(part.Text))
		}
	}
	return list
}

func textPart(text string) object { return object{{"type", "text"}, {"text", text}} }

// chatContent is a message's content as chat APIs have it.
func chatContent(m *episode.Message) any {
	return content(m, textPart, func(url string, _ *episode.Part) object {
		return object{{"type", "image_url"}, {"image_url", object{{"url", url}}}}
	})
}

// inspectContent is a message's content as Inspect has it.
func inspectContent(m *episode.Message) any {
	return content(m, textPart, func(url string, _ *episode.Part) object {
		return object{{"type", "image"}, {"image", url}, {"detail", "auto"}}
	})
}

// responsesContent is a message's content as the Responses API has it.
func responsesContent(m *episode.Message) any {
	return content(m, func(text string) object {
		return object{{"type", "input_text"}, {"text", text}}
	}, func(url string, _ *episode.Part) object {
		return object{{"type", "input_image"}, {"image_url", url}, {"detail", "auto"}}
	})
}

// atifContent is a step's message as ATIF has it since 1.6.
func atifContent(m *episode.Message) any {
	return content(m, textPart, func(url string, part *episode.Part) object {
		return object{{"type", "image"}, {"source", object{{"media_type", part.MIME}, {"path", url}}}}
	})
}
