package tools

import (
	"context"
	"encoding/json"
	"strings"

	"trajgen/registry"
	"trajgen/tools/media"
)

const imageFolder = "images" // of pictures that were made, in the working directory

func init() {
	add(registry.Define(registry.Definition{
		Name: "image_generate", Toolset: "image_gen", Timeout: makeTimeout,
		Access: func(json.RawMessage) registry.Access { return registry.Access{Writes: []string{imageFolder}} },
		Description: "Makes a picture of a description, and writes it to a file in " + imageFolder + "/. The result has its path. With the provider " +
			"local, the picture shows the words of the description among coloured shapes.",
	}, imageGenerate))
}

type imageGenerateArgs struct {
	Prompt string `json:"prompt" alias:"description,text" doc:"What the picture shows." maxlen:"4000"`
	Aspect string `json:"aspect_ratio,omitempty" alias:"aspect,size" doc:"The shape of the picture." enum:"landscape,square,portrait" default:"landscape"`
}

type imageGenerateResult struct {
	Success  bool   `json:"success"`
	Image    string `json:"image"`
	Width    int    `json:"width"`
	Height   int    `json:"height"`
	Provider string `json:"provider"`
	Revised  string `json:"revised_prompt,omitempty"`
}

func imageGenerate(ctx context.Context, env *registry.Env, args imageGenerateArgs) (any, error) {
	view, err := mediaView(env)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(args.Prompt) == "" {
		f := registry.Failf("empty_prompt", "the prompt is empty: describe the picture")
		f.Extra = map[string]any{"success": false, "image": nil, "error_type": f.Class}
		return nil, f
	}
	made, err := view.Image(ctx, env.CallID, args.Prompt, args.Aspect)
	env.Source = &made.About
	if err != nil {
		return nil, mediaFailure(env, err)
	}
	file, err := saveMedia(ctx, env, imageFolder, made, media.Extension(made.About.Type))
	if err != nil {
		return nil, err
	}
	return imageGenerateResult{true, file, made.About.Width, made.About.Height, view.Painter(), made.About.Revised}, nil
}
