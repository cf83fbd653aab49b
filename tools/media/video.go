package media

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"net/http"
	"strings"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/tools/web/source"
)

// Clip is a video that is to be made. What is zero is left to the model.
type Clip struct {
	Prompt         string   `json:"prompt" alias:"description,text" doc:"What the video shows." minlen:"1" maxlen:"4000"`
	Image          string   `json:"image_url,omitempty" alias:"image" doc:"An image that the video begins with: an http(s) URL."`
	References     []string `json:"reference_image_urls,omitempty" doc:"Images of what the video shows: http(s) URLs." maxitems:"8"`
	Seconds        int      `json:"duration,omitempty" alias:"seconds" doc:"How many seconds it lasts." min:"1" max:"60"`
	Aspect         string   `json:"aspect_ratio,omitempty" doc:"Its shape." enum:"16:9,9:16,1:1,4:3,3:4"`
	Resolution     string   `json:"resolution,omitempty" doc:"How fine it is." enum:"480p,720p,1080p"`
	NegativePrompt string   `json:"negative_prompt,omitempty" doc:"What it must not show." maxlen:"4000"`
	Audio          *bool    `json:"audio,omitempty" doc:"Whether it has sound."`
	Seed           *int64   `json:"seed,omitempty" doc:"The same seed gives a similar video again." min:"0"`
	Model          string   `json:"model,omitempty" doc:"A model of the provider, in place of the usual one." maxlen:"200"`
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
	var data []byte
	worst := model.Bound{Made: episode.Made{Seconds: cmp.Or(float64(c.Seconds), longest)}}
	err := v.paid(ctx, s, &about, order{"video", c.Prompt, worst, func() (used episode.Usage, err error) {
		got, err := s.falVideo(ctx, about.Model, c.input())
		if err != nil {
			return used, err
		}
		about.Seed = got.seed
		var page source.Page
		if page, data, err = v.attempt.Web.File(ctx, call, got.url, maxFile); err != nil {
			return used, err
		}
		about.URL = page.URL
		if about.Type = videoType(data); about.Type == "" {
			return used, s.Errorf(source.Outage, source.Malformed, "what came is not a video")
		}
		about.Seconds = playTime(data)
		return episode.Usage{Reported: about.Seconds > 0, Made: episode.Made{Seconds: about.Seconds}}, nil
	}})
	if err != nil {
		return File{About: about}, err
	}
	about.Weigh(data)
	return File{data, about}, nil
}

// longest is how many seconds a video has at most.
const longest = 60.0

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

// playTime is how many seconds an MP4 or MOV file plays, by its movie header; 0 where it has none that can be read.
func playTime(data []byte) float64 {
	for _, name := range []string{"moov", "mvhd"} {
		for {
			if len(data) < 8 {
				return 0
			}
			size := int(binary.BigEndian.Uint32(data))
			if size < 8 || size > len(data) {
				return 0
			}
			if string(data[4:8]) == name {
				data = data[8:size]
				break
			}
			data = data[size:]
		}
	}
	var scale, units float64
	switch {
	case len(data) >= 20 && data[0] == 0:
		scale, units = float64(binary.BigEndian.Uint32(data[12:])), float64(binary.BigEndian.Uint32(data[16:]))
	case len(data) >= 32 && data[0] == 1:
		scale, units = float64(binary.BigEndian.Uint32(data[20:])), float64(binary.BigEndian.Uint64(data[24:]))
	}
	if scale == 0 || units/scale > 24*3600 {
		return 0
	}
	return math.Round(units/scale*1000) / 1000
}
