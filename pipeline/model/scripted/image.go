package scripted

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"strings"

	_ "golang.org/x/image/webp"
)

// seen is what the model sees of an image. A solution can speak of the last one that it was shown: {{image.sha256}}, {{image.size}}
// as in 1280x720, and {{image.count}} for how many there were.
type seen struct {
	digest        string // "" for a URL that holds no image
	width, height int
}

// look looks at the image in a data URL.
func look(url string) seen {
	about, text, found := strings.Cut(url, ";base64,")
	kind, isData := strings.CutPrefix(about, "data:image/")
	data, err := base64.StdEncoding.DecodeString(text)
	if !found || !isData || err != nil {
		return seen{}
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || format != kind {
		return seen{}
	}
	sum := sha256.Sum256(data)
	return seen{hex.EncodeToString(sum[:]), config.Width, config.Height}
}

func (s seen) size() string { return fmt.Sprintf("%dx%d", s.width, s.height) }

// written is the image in a prompt: it costs as many tokens as it has squares of 28 pixels.
func (s seen) written() string {
	return "<image " + s.digest + ">" + strings.Repeat(".", (s.width*s.height)/(28*28))
}

// pictured is a turn that speaks of the images in the request.
func (t turn) pictured(req *request) turn {
	var last seen
	count := 0
	for _, m := range req.Messages {
		for _, s := range m.Content.images {
			last, count = s, count+1
		}
	}
	if count == 0 {
		return t
	}
	words := strings.NewReplacer("{{image.sha256}}", last.digest, "{{image.size}}", last.size(), "{{image.count}}", fmt.Sprint(count))
	t.content = words.Replace(t.content)
	calls := make([]call, len(t.calls))
	for i, c := range t.calls {
		c.args = words.Replace(c.args)
		calls[i] = c
	}
	t.calls = calls
	return t
}
