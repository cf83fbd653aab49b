package tools

import (
	"context"

	"trajgen/registry"
	"trajgen/tools/media"
)

func init() {
	add(registry.Define(registry.Definition{
		Name: "video_analyze", Toolset: "video", Untrusted: "video", Timeout: lookTimeout, Access: mediaReads("video_url"),
		Description: "Looks at a video and answers a question about it. The video is a file (MP4, WebM or MOV, at most 50 MB), a URL, or a " +
			"data: URL.",
	}, videoAnalyze))
}

type videoAnalyzeArgs struct {
	Video    string `json:"video_url" alias:"video,video_path,path,url,file_path" doc:"The video: a path, an http(s) URL or a data: URL." minlen:"1"`
	Question string `json:"question" alias:"prompt,query,user_prompt" doc:"What to find out about the video." minlen:"1" maxlen:"10000"`
}

func videoAnalyze(ctx context.Context, env *registry.Env, args videoAnalyzeArgs) (any, error) {
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
	data, err := readMedia(ctx, env, args.Video, about)
	if err != nil {
		return nil, mediaFailure(env, err)
	}
	about.Weigh(data)
	env.Source = about
	answer, err := media.Watch(ctx, env, data, args.Question, about)
	if err != nil {
		return nil, mediaFailure(env, err)
	}
	about.Threats = suspect(nil, answer)
	return analysis{true, answer}, nil
}
