package model

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"trajgen/pipeline/episode"
)

// A request that waits holds the digests of its images. Their bytes are read when it is sent, one image after the other, and a tape
// keeps the digests: the bytes are beside the run.

// ClassImage is fatal: an image of the conversation cannot be read.
const ClassImage = "image"

// digestURL is how an encoded message names an image until it is sent.
const digestURL = "sha256:"

// inlined is an image in the place of its digest.
type inlined struct {
	from, to int // of the digest in the list of messages
	part     *episode.Part
}

// wirePart is a part of a message as it is sent. The form of a video is OpenRouter's and vLLM's.
type wirePart struct {
	openai.ChatMessagePart
	VideoURL *openai.ChatMessageImageURL `json:"video_url,omitempty"`
}

// urlFields have the URL of a part of a type.
var urlFields = map[string]string{episode.PartImage: "image_url", episode.PartVideo: "video_url"}

// contentList is the content of a message with images or videos.
func contentList(m *episode.Message) []wirePart {
	var list []wirePart
	for _, part := range m.Ordered() {
		sent, url := wirePart{}, &openai.ChatMessageImageURL{URL: digestURL + part.SHA256}
		switch part.Type {
		case episode.PartImage:
			sent.Type, sent.ImageURL = openai.ChatMessagePartTypeImageURL, url
		case episode.PartVideo:
			sent.Type, sent.VideoURL = "video_url", url
		default:
			sent.Type, sent.Text = openai.ChatMessagePartTypeText, part.Text
		}
		list = append(list, sent)
	}
	return list
}

// imagesIn finds the images of a message that was encoded from a place on. A text cannot look like one: its quotes are escaped.
func imagesIn(list []byte, from int, m *episode.Message) (all []inlined) {
	for i := range m.Parts {
		part := &m.Parts[i]
		if urlFields[part.Type] == "" {
			continue
		}
		before := []byte(`"` + urlFields[part.Type] + `":{"url":"`)
		name := digestURL + part.SHA256
		at := from + bytes.Index(list[from:], append(before, name...)) + len(before)
		from = at + len(name)
		all = append(all, inlined{at, from, part})
	}
	return all
}

// dataURL is what an image's URL begins with.
func (i *inlined) dataURL() string { return "data:" + i.part.MIME + ";base64," }

// size is how many bytes stand in the place of the digest.
func (i *inlined) size() int {
	return len(i.dataURL()) + base64.StdEncoding.EncodedLen(i.part.Bytes)
}

// inline is the messages with their images, in pieces, and their size.
func (d *doer) inline(messages []byte, images []inlined) (pieces []io.Reader, size int64) {
	at := 0
	for i := range images {
		image := &images[i]
		pieces = append(pieces, bytes.NewReader(messages[at:image.from]), &imageReader{read: d.cfg.Images, image: image})
		size += int64(image.from - at + image.size())
		at = image.to
	}
	return append(pieces, bytes.NewReader(messages[at:])), size + int64(len(messages)-at)
}

// imageReader reads an image as a data URL. It holds the image from its first byte to its last.
type imageReader struct {
	read  func(sha256 string) ([]byte, error)
	image *inlined
	held  io.Reader
}

func (r *imageReader) Read(p []byte) (int, error) {
	if r.held == nil {
		data, err := r.load()
		if err != nil {
			return 0, &refusal{class: ClassImage, message: err.Error()}
		}
		text := append([]byte(r.image.dataURL()), make([]byte, base64.StdEncoding.EncodedLen(len(data)))...)
		base64.StdEncoding.Encode(text[len(r.image.dataURL()):], data)
		r.held = bytes.NewReader(text)
	}
	n, err := r.held.Read(p)
	if err == io.EOF {
		r.held = bytes.NewReader(nil)
	}
	return n, err
}

func (r *imageReader) load() ([]byte, error) {
	if r.read == nil {
		return nil, fmt.Errorf("image %s: no images are kept here", r.image.part.SHA256)
	}
	data, err := r.read(r.image.part.SHA256)
	if err == nil && len(data) != r.image.part.Bytes {
		err = fmt.Errorf("image %s has %d bytes (want %d)", r.image.part.SHA256, len(data), r.image.part.Bytes)
	}
	return data, err
}

// body is what is sent: what stands before the messages, they with their images, and what follows.
func (d *doer) body(x *exchange, before []byte, after net.Buffers) (body func() io.ReadCloser, size int64) {
	_, size = d.inline(x.messages, x.images)
	for _, part := range append(after[:len(after):len(after)], before) {
		size += int64(len(part))
	}
	return func() io.ReadCloser {
		pieces, _ := d.inline(x.messages, x.images)
		last := slices.Clone(after)
		return io.NopCloser(io.MultiReader(slices.Concat([]io.Reader{bytes.NewReader(before)}, pieces, []io.Reader{&last})...))
	}, size
}
