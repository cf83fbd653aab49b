package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/media"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "vision_analyze", Toolset: "vision", Untrusted: "image", Timeout: lookTimeout, Access: mediaReads("image_url"),
		Description: "Looks at an image and answers a question about it, or shows it to you. The image is a file (PNG, JPEG, GIF or WebP), " +
			"a URL, or a data: URL.",
	}, visionAnalyze))
}

type visionAnalyzeArgs struct {
	Image    string `json:"image_url" alias:"image,image_path,path,url,file_path" doc:"The image: a path, an http(s) URL or a data: URL." minlen:"1"`
	Question string `json:"question" alias:"prompt,query,user_prompt" doc:"What to find out about the image." minlen:"1" maxlen:"10000"`
}

type analysis struct {
	Success  bool   `json:"success"`
	Analysis string `json:"analysis"`
}

func visionAnalyze(ctx context.Context, env *registry.Env, args visionAnalyzeArgs) (any, error) {
	return analyze(ctx, env, args.Image, func(data []byte, about *media.About) (string, error) {
		return media.Look(ctx, env, registry.Image{Data: data}, args.Question, about)
	})
}

// analyze answers a question about the picture or video at a place, as ask does.
func analyze(ctx context.Context, env *registry.Env, place string, ask func([]byte, *media.About) (string, error)) (any, error) {
	view, err := mediaView(env)
	if err != nil {
		return nil, err
	}
	about := &media.About{}
	leave, err := view.Enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	data, err := readMedia(ctx, env, place, about)
	if err != nil {
		return nil, mediaFailure(env, err)
	}
	about.Weigh(data)
	env.Source = about
	answer, err := ask(data, about)
	if err != nil {
		return nil, mediaFailure(env, err)
	}
	about.Threats = suspect(nil, answer)
	return analysis{true, answer}, nil
}
