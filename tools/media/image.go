package media

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"image"
	"strings"

	// The kinds of images that providers make.
	_ "image/jpeg"
	_ "image/png"

	_ "golang.org/x/image/webp"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/tools/web/source"
)

// Sizes of pictures, by aspect ratio.
var sizes = map[string]image.Point{"landscape": {1536, 1024}, "square": {1024, 1024}, "portrait": {1024, 1536}}

// maxFile bounds a file from a URL, in bytes.
const maxFile = 50 << 20

// File is what was made or fetched. Its Type is that of its bytes.
type File struct {
	Data  []byte
	About About
}

// maxImageTokens is what a picture of OpenAI's can have: the API documents 6240 for the largest.
const maxImageTokens = 8192

// Image makes a picture. aspect is landscape, square or portrait. An error is a *source.Error, unless ctx has ended.
func (v *View) Image(ctx context.Context, call, prompt, aspect string) (File, error) {
	size, settings := sizes[aspect], v.config.Settings
	if cmp.Or(settings.Image, Local) == Local {
		return made(draw(prompt, size), About{By: localVersion})
	}
	s := v.service(settings.Image, call)
	about := About{By: s.version, Model: cmp.Or(settings.ImageModel, s.image), Mode: v.attempt.Web.Mode()}
	var picture reply
	worst := model.Bound{Prompt: len(prompt) + 256, Made: episode.Made{Images: 1}}
	if s.name == "openai" {
		worst.Completion = maxImageTokens
	}
	err := v.paid(ctx, s, &about, order{"image", prompt, worst, func() (used episode.Usage, err error) {
		if s.name == "fal" {
			picture, err = s.falImage(ctx, about.Model, prompt, size)
		} else {
			picture, err = s.openaiImage(ctx, about.Model, prompt, size)
		}
		used = picture.usage
		used.Reported, used.Made = true, worst.Made
		return used, err
	}})
	if err != nil {
		return File{About: about}, err
	}
	about.Revised, about.Seed = picture.revised, picture.seed
	return v.received(ctx, call, picture, about)
}

// received is the file that a provider made, or says where it is.
func (v *View) received(ctx context.Context, call string, r reply, about About) (File, error) {
	if r.url != "" && !strings.HasPrefix(r.url, "data:") {
		page, data, err := v.attempt.Web.File(ctx, call, r.url, maxFile)
		if err != nil {
			return File{About: about}, err
		}
		r.data, about.URL = data, page.URL
	} else if r.url != "" {
		data, err := DataURL(r.url)
		if err != nil {
			return File{About: about}, err
		}
		r.data = data
	}
	return made(r.data, about)
}

// reply is what a provider made: its bytes, or where they are.
type reply struct {
	data    []byte
	url     string
	revised string
	seed    *int64
	usage   episode.Usage // tokens, where the provider counts some
}

// made is a picture, or the error of bytes that are none.
func made(data []byte, about About) (File, error) {
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		err = source.Errorf(source.Outage, source.Malformed, "%s: what came is not a picture that can be read: %v", about.By, err)
		return File{About: about}, err
	}
	about.Type, about.Width, about.Height = "image/"+format, config.Width, config.Height
	about.Weigh(data)
	return File{data, about}, nil
}

// maxDataURL bounds the text of a data: URL.
const maxDataURL = 20 << 20

// DataURL is what a data: URL in base64 holds.
func DataURL(text string) ([]byte, error) {
	bad := func(why string) ([]byte, error) {
		return nil, source.Errorf(source.Agent, source.Malformed, "the data: URL cannot be read: %s", why)
	}
	head, body, found := strings.Cut(text, ",")
	switch {
	case len(text) > maxDataURL:
		const says = "the data: URL has more than %d MB; write a file and give its path"
		return nil, source.Errorf(source.Agent, source.TooLarge, says, maxDataURL>>20)
	case !found, !strings.HasSuffix(head, ";base64"):
		return bad("want data:TYPE;base64,DATA")
	}
	body = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "", " ", "").Replace(body), "=")
	data, err := base64.RawStdEncoding.DecodeString(body)
	if err != nil {
		return bad(err.Error())
	}
	return data, nil
}
