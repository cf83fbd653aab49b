package export

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"path"
	"slices"
	"strings"

	"trajgen/outputs/log/blobs"
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
	refuseMark    = "a text with <image>, <video> or <audio> in it, for which the format would want an image, a video or a sound"
)

// pictured is an episode as a format takes it: with the bytes of its images, or without them. The one that is given stays as it is.
func (s *Sink) pictured(ep *episode.Episode) (*episode.Episode, error) {
	if s.imaging == named {
		return ep, nil
	}
	made := *ep
	err := s.picture(&made.Messages)
	if err == nil && len(ep.Messages) == 0 { // then formats tell what was to be asked
		err = s.picture(&made.Task.Prompt)
	}
	made.Children = slices.Clone(ep.Children)
	for i, child := range ep.Children {
		var failed error
		made.Children[i], failed = s.pictured(child)
		err = cmp.Or(err, failed)
	}
	return &made, err
}

// picture sees to the images of messages.
func (s *Sink) picture(messages *[]episode.Message) error {
	if !slices.ContainsFunc(*messages, func(m episode.Message) bool { return len(m.Parts) > 0 }) {
		return nil
	}
	*messages = slices.Clone(*messages)
	for i := range *messages {
		m := &(*messages)[i]
		if s.imaging != inlined || !s.options.Inline {
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
				return &Refusal{refuseMissing}
			}
		}
	}
	return nil
}

// remarkImages notes images that are not in what was written.
func (s *Sink) remarkImages(ep *episode.Episode) {
	switch {
	case s.imaging == named || s.imaging == inlined && s.options.Inline || !slices.ContainsFunc(ep.Messages, pictures):
	case s.imaging == inlined:
		s.lost[noteNotInline]++
	default:
		s.lost[noteNoImages]++
	}
}

// pictures says whether a message has images.
func pictures(m episode.Message) bool { return len(m.Images()) > 0 }

// content is what a message says: a text, or a list of texts and images where it has images. Formats write those in their own ways.
func content(m *episode.Message, text func(string) object, image func(url string, part *episode.Part) object) any {
	if len(m.Images()) == 0 {
		return m.Content
	}
	var list []object
	for _, part := range m.Ordered() {
		if part.Type == episode.PartImage {
			list = append(list, image(dataURL(part.MIME, part.Data), &part))
		} else {
			list = append(list, text(part.Text))
		}
	}
	return list
}

func dataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
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

// rowImage is an image in a column of a row's images: in Parquet as the Image of Hugging Face's datasets
// (src/datasets/features/image.py), whose path names it by its digest, and a data URL in JSON.
type rowImage struct {
	Bytes []byte `parquet:"bytes"`
	Path  string `parquet:"path"`
}

func newRowImage(mime string, data []byte) rowImage {
	return rowImage{data, blobs.Digest(data) + "." + strings.TrimPrefix(mime, "image/")}
}

// MarshalJSON is its data URL.
func (i rowImage) MarshalJSON() ([]byte, error) {
	return quoted(dataURL("image/"+strings.TrimPrefix(path.Ext(i.Path), "."), i.Bytes)), nil
}

// UnmarshalJSON is for rows that wait on disk.
func (i *rowImage) UnmarshalJSON(text []byte) error {
	head, body, _ := bytes.Cut(bytes.Trim(text, `"`), []byte(";base64,"))
	data, err := base64.StdEncoding.AppendDecode(nil, body)
	*i = newRowImage(strings.TrimPrefix(string(head), "data:"), data)
	return err
}

// rowImages are the images of messages, in their order.
func rowImages(messages []episode.Message) []rowImage {
	all := []rowImage{}
	for i := range messages {
		for _, image := range messages[i].Images() {
			all = append(all, newRowImage(image.MIME, image.Data))
		}
	}
	return all
}

// marks are what trainers take for an image, a video or a sound in a text: verl's MultiTurnSFTDataset and RLHFDataset
// (verl/utils/dataset) and LLaMA-Factory's MMPluginMixin (src/llamafactory/data/mm_plugin.py) count them in every message.
var marks = []string{imageMark, "<video>", "<audio>"}

const imageMark = "<image>"

// unmarked refuses texts that would be read otherwise than they are meant.
func unmarked(texts ...string) error {
	for _, text := range texts {
		if slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(text, mark) }) {
			return &Refusal{refuseMark}
		}
	}
	return nil
}

// withMarks is what a message says, with a mark where each of its images stands.
func withMarks(m *episode.Message) (string, error) {
	if err := unmarked(m.Content); err != nil || !pictures(*m) {
		return m.Content, err
	}
	var text strings.Builder
	behindText := false
	for _, part := range m.Ordered() {
		said := part.Text
		if part.Type == episode.PartImage {
			said = imageMark
		} else if behindText {
			text.WriteByte('\n') // as in the message's own text
		}
		text.WriteString(said)
		behindText = part.Type != episode.PartImage
	}
	return text.String(), nil
}

// asIs is what a message says without its images.
func asIs(m *episode.Message) (string, error) { return m.Content, nil }

// sayer is what a message says.
type sayer func(*episode.Message) (string, error)

// saying is how a format with marks takes messages.
func saying(options Options) sayer {
	if options.Inline {
		return withMarks
	}
	return asIs
}
