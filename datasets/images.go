package datasets

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"trajgen/outputs/media/picture"
	"trajgen/pipeline/episode"
)

// readParts takes a string or a list of texts and images. The text is that of all parts, joined by line breaks; parts are nil without
// images.
func readParts(p *problems, at string, value json.RawMessage) (text string, parts []episode.Part) {
	items, err := elements(value)
	if err != nil { // a text, or a mistake
		return readContent(p, at, value), nil
	}
	var texts []string
	images, last := 0, false // whether a text stands behind an image
	for i, each := range items {
		if image, ok := asImagePart(each); ok {
			part, err := imageFrom(image)
			if err != nil {
				p.addf("%s: %v", item(at, i), err)
			}
			parts, images = append(parts, part), images+1
			continue
		}
		said, err := asTextPart(each)
		if err != nil {
			p.addf("%s: %v", item(at, i), err)
		}
		texts, parts, last = append(texts, said), append(parts, episode.Part{Type: episode.PartText, Text: said}), last || images > 0
	}
	switch {
	case images == 0:
		parts = nil
	case len(texts) == 1 && !last: // the message's own text comes first anyway
		parts = parts[1:]
	}
	return strings.Join(texts, "\n"), parts
}

// asImagePart is the URL in a part {"type": "image_url", "image_url": {"url": ...}}.
func asImagePart(value json.RawMessage) (url string, ok bool) {
	part, err := columnsIn(value)
	if err != nil || part.text("type") != "image_url" {
		return "", false
	}
	if url, ok = asString(part["image_url"]); ok {
		return url, true
	}
	return part.inside("image_url").text("url"), true
}

// imageFrom takes a data URL. What it holds is prepared when the task is played.
func imageFrom(url string) (episode.Part, error) {
	about, text, found := strings.Cut(url, ",")
	kind, isData := strings.CutPrefix(about, "data:")
	kind, isBase64 := strings.CutSuffix(kind, ";base64")
	if !found || !isData || !isBase64 {
		return episode.Part{}, fmt.Errorf("image_url is %.40q, want a data URL such as data:image/png;base64,...: a dataset must not change with the web", url)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return episode.Part{}, errors.New("image_url: it is not base64")
	}
	if err := picture.Check(kind, data); err != nil {
		return episode.Part{}, fmt.Errorf("image_url: %w", err)
	}
	return episode.Part{Type: episode.PartImage, MIME: kind, Data: data}, nil
}

// imageMark is where rows of trainers have an image in a text.
const imageMark = "<image>"

// withImages puts a row's column images into the texts of its prompt, in their order, in place of the marks there.
func (b *builder) withImages(prompt, images json.RawMessage) json.RawMessage {
	list, err := elements(images)
	if err != nil || len(list) == 0 {
		return prompt
	}
	messages, err := elements(prompt)
	if err != nil {
		return prompt
	}
	for i, each := range messages {
		message, err := columnsIn(each)
		said, isText := asString(message["content"])
		if err != nil || !isText || message.text("role") != "user" {
			continue
		}
		texts := strings.Split(said, imageMark)
		if len(texts) == 1 {
			continue
		}
		var content []map[string]any
		for n, text := range texts {
			if n > 0 {
				if len(list) == 0 {
					b.wrong.addf("images: there are fewer than %s in the prompt", imageMark)
					return prompt
				}
				url, err := imageURL(list[0])
				if err != nil {
					b.wrong.addf("images: %v", err)
					return prompt
				}
				list = list[1:]
				content = append(content, map[string]any{"type": "image_url", "image_url": map[string]string{"url": url}})
			}
			if strings.TrimSpace(text) != "" {
				content = append(content, map[string]any{"type": "text", "text": text})
			}
		}
		messages[i] = episode.MustJSON(map[string]any{"role": "user", "content": content})
	}
	if len(list) > 0 {
		b.wrong.addf("images: the prompt has no %s for %d of them", imageMark, len(list))
	}
	return episode.MustJSON(messages)
}

// imageURL is an image of the column images as a data URL: of {bytes, path}, as Hugging Face's datasets have it, or a data URL itself.
func imageURL(value json.RawMessage) (string, error) {
	if url, ok := asString(value); ok {
		return url, nil
	}
	image, err := columnsIn(value)
	if err != nil {
		return "", err
	}
	text := image.inside("bytes").text("base64")
	if text == "" {
		return "", errors.New("an image without bytes (want {bytes, path} with its bytes, or a data URL)")
	}
	return "data:;base64," + text, nil
}
