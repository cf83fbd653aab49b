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
	return analyze(ctx, env, args.Video, func(data []byte, about *media.About) (string, error) {
		return media.Watch(ctx, env, data, args.Question, about)
	})
}
