package media

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"trajgen/tools/web/source"
)

// Clip is a video that is to be made. What is zero is left to the model.
type Clip struct {
	Prompt         string
	Image          string   // URL that it begins with
	References     []string // URLs of what it shows
	Seconds        int
	Aspect         string
	Resolution     string
	NegativePrompt string
	Audio          *bool
	Seed           *int64
	Model          string // "" is the run's
}

// input is the clip in the words of fal.ai's models.
func (c Clip) input() map[string]any {
	input := map[string]any{"prompt": c.Prompt}
	add := func(given bool, name string, value any) {
		if given {
			input[name] = value
		}
	}
	add(c.Image != "", "image_url", c.Image)
	add(len(c.References) > 0, "reference_image_urls", c.References)
	add(c.Seconds > 0, "duration", c.Seconds)
	add(c.Aspect != "", "aspect_ratio", c.Aspect)
	add(c.Resolution != "", "resolution", c.Resolution)
	add(c.NegativePrompt != "", "negative_prompt", c.NegativePrompt)
	add(c.Audio != nil, "generate_audio", c.Audio)
	add(c.Seed != nil, "seed", c.Seed)
	return input
}

// Video makes a video. An error is a *source.Error, unless ctx has ended.
func (v *View) Video(ctx context.Context, call string, c Clip) (File, error) {
	settings := v.config.Settings
	if settings.Video == "" {
		const says = "this run makes no videos: its setting media.video names no provider"
		return File{}, source.Errorf(source.Outage, source.Unavailable, says)
	}
	s := v.service(settings.Video, call)
	about := About{By: s.version, Model: cmp.Or(c.Model, settings.VideoModel, s.kind.video), Mode: v.attempt.Web.Mode()}
	got, err := s.falVideo(ctx, about.Model, c.input())
	if err != nil {
		return File{About: about}, err
	}
	about.Seed = got.seed
	page, data, err := v.attempt.Web.File(ctx, call, got.url, maxFile)
	if err != nil {
		return File{About: about}, err
	}
	about.URL = page.URL
	if about.Type = videoType(data); about.Type == "" {
		return File{About: about}, s.fault(source.Outage, source.Malformed, "what came is not a video")
	}
	about.Weigh(data)
	return File{data, about}, nil
}

// videoType is the type of a video by its first bytes; "" for anything else.
func videoType(data []byte) string {
	if kind := http.DetectContentType(data); strings.HasPrefix(kind, "video/") {
		return kind
	}
	if len(data) >= 12 && string(data[4:8]) == "ftyp" { // MP4 of brands that the library does not know
		if string(data[8:12]) == "qt  " {
			return "video/quicktime"
		}
		return "video/mp4"
	}
	return ""
}
