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

// modelName is a path of names, none of which leads upwards.
var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)+$`)

type videoGenerateResult struct {
	Success bool   `json:"success"`
	Video   string `json:"video"`
	Model   string `json:"model"`
}

func videoGenerate(ctx context.Context, env *registry.Env, clip media.Clip) (any, error) {
	view, err := mediaView(env)
	if err != nil {
		return nil, err
	}
	for _, url := range append(clip.References, clip.Image) {
		if url != "" && !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") {
			return nil, registry.Failf("bad_url", "%.100q is not an http(s) URL, which the provider could fetch", url)
		}
	}
	if clip.Model != "" && !modelName.MatchString(clip.Model) {
		return nil, registry.Failf("bad_model", "%.100q is not a model's name (want one such as fal-ai/veo3/fast)", clip.Model)
	}
	made, err := view.Video(ctx, env.CallID, clip)
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
