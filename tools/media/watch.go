package media

import (
	"context"

	"trajgen/outputs/log/blobs"
	"trajgen/pipeline/episode"
	"trajgen/registry"
)

// Watch asks the run's vision model about a video, as Look does about an image. The video goes to the server as OpenRouter and
// others take it: {"type":"video_url","video_url":{"url":"data:video/mp4;base64,..."}}.
func Watch(ctx context.Context, env *registry.Env, data []byte, question string, about *About) (answer string, err error) {
	v, err := sighted(env, "videos")
	if err != nil {
		return "", err
	}
	about.Type = videoType(data)
	if about.Type == "" {
		return "", registry.Failf("bad_video", "the file cannot be read as a video (want MP4, WebM or MOV)")
	}
	part := episode.Part{Type: episode.PartVideo, MIME: about.Type, SHA256: blobs.Digest(data), Bytes: len(data)}
	defer v.config.Shelf.show(part.SHA256, data)()
	return v.ask(ctx, about, part, question)
}
