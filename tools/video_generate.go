package tools

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"trajgen/registry"
	"trajgen/tools/media"
)

const videoFolder = "videos" // of videos that were made, in the working directory

func init() {
	add(registry.Define(registry.Definition{
		Name: "video_generate", Toolset: "video_gen", Timeout: videoTimeout,
		Access: func(json.RawMessage) registry.Access { return registry.Access{Writes: []string{videoFolder}} },
		Description: "Makes a short video of a description, and writes it to a file in " + videoFolder + "/. The result has its path. It takes " +
			"minutes.",
	}, videoGenerate))
}

type videoGenerateArgs struct {
	Prompt         string   `json:"prompt" alias:"description,text" doc:"What the video shows." minlen:"1" maxlen:"4000"`
	Image          string   `json:"image_url,omitempty" alias:"image" doc:"An image that the video begins with: an http(s) URL."`
	References     []string `json:"reference_image_urls,omitempty" doc:"Images of what the video shows: http(s) URLs." maxitems:"8"`
	Duration       int      `json:"duration,omitempty" alias:"seconds" doc:"How many seconds it lasts." min:"1" max:"60"`
	Aspect         string   `json:"aspect_ratio,omitempty" doc:"Its shape." enum:"16:9,9:16,1:1,4:3,3:4"`
	Resolution     string   `json:"resolution,omitempty" doc:"How fine it is." enum:"480p,720p,1080p"`
	NegativePrompt string   `json:"negative_prompt,omitempty" doc:"What it must not show." maxlen:"4000"`
	Audio          *bool    `json:"audio,omitempty" doc:"Whether it has sound."`
	Seed           *int64   `json:"seed,omitempty" doc:"The same seed gives a similar video again." min:"0"`
	Model          string   `json:"model,omitempty" doc:"A model of the provider, in place of the usual one." maxlen:"200"`
}

// modelName is a path of names, none of which leads upwards.
var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)+$`)

type videoGenerateResult struct {
	Success bool   `json:"success"`
	Video   string `json:"video"`
	Model   string `json:"model"`
}

func videoGenerate(ctx context.Context, env *registry.Env, args videoGenerateArgs) (any, error) {
	view, err := mediaView(env)
	if err != nil {
		return nil, err
	}
	for _, url := range append(args.References, args.Image) {
		if url != "" && !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			return nil, registry.Failf("bad_url", "%.100q is not an http(s) URL, which the provider could fetch", url)
		}
	}
	if args.Model != "" && !modelName.MatchString(args.Model) {
		return nil, registry.Failf("bad_model", "%.100q is not a model's name (want one such as fal-ai/veo3/fast)", args.Model)
	}
	made, err := view.Video(ctx, env.CallID, media.Clip{
		Prompt: args.Prompt, Image: args.Image, References: args.References, Seconds: args.Duration, Aspect: args.Aspect,
		Resolution: args.Resolution, NegativePrompt: args.NegativePrompt, Audio: args.Audio, Seed: args.Seed, Model: args.Model,
	})
	if made.About.By != "" {
		env.Source = &made.About
	}
	if err != nil {
		return nil, mediaFailure(env, err)
	}
	file, err := saveMedia(ctx, env, videoFolder, made, media.Extension(made.About.Type))
	if err != nil {
		return nil, err
	}
	return videoGenerateResult{true, file, made.About.Model}, nil
}
