package media

import (
	"context"
	"image"
	"net/http"
	"strings"
	"time"

	"trajgen/tools/web/source"
)

// falFile is a file that fal.ai made.
type falFile struct {
	URL string `json:"url"`
}

func (s *service) falImage(ctx context.Context, model, prompt string, size image.Point) (r reply, err error) {
	var got struct {
		Images []falFile `json:"images"`
		Seed   *int64    `json:"seed"`
		Unsafe []bool    `json:"has_nsfw_concepts"` // then the picture is black
	}
	err = s.ask(ctx, http.MethodPost, "/"+model, map[string]any{
		"prompt": prompt, "image_size": map[string]int{"width": size.X, "height": size.Y}, "num_images": 1, "output_format": "png",
	}, &got)
	switch {
	case err != nil:
		return r, err
	case len(got.Unsafe) > 0 && got.Unsafe[0]:
		return r, s.refusedPrompt("(the picture is black)")
	case len(got.Images) == 0 || got.Images[0].URL == "":
		return r, s.Errorf(source.Outage, source.Malformed, "its answer has no picture")
	}
	return reply{url: got.Images[0].URL, seed: got.Seed}, nil
}

// falPause is the time between two questions whether a video is ready.
const falPause = 2 * time.Second

// falVideo puts a request into a model's queue, and waits for what comes of it.
func (s *service) falVideo(ctx context.Context, model string, input map[string]any) (r reply, err error) {
	queue := strings.Replace(s.base, "https://fal.run", "https://queue.fal.run", 1)
	var begun struct {
		ID string `json:"request_id"`
	}
	if err := s.ask(ctx, http.MethodPost, queue+"/"+model, input, &begun); err != nil {
		return r, err
	}
	if begun.ID == "" || strings.ContainsAny(begun.ID, "/?#%.") {
		return r, s.Errorf(source.Outage, source.Malformed, "its answer has no request_id")
	}
	app := strings.Join(strings.SplitN(model, "/", 3)[:min(2, strings.Count(model, "/")+1)], "/") // without a path within it
	request := queue + "/" + app + "/requests/" + begun.ID
	for {
		var state struct {
			Status string `json:"status"`
		}
		if err := s.ask(ctx, http.MethodGet, request+"/status", nil, &state); err != nil {
			return r, err
		}
		if state.Status == "COMPLETED" {
			break
		}
		if state.Status != "IN_QUEUE" && state.Status != "IN_PROGRESS" {
			return r, s.Errorf(source.Outage, source.Malformed, "the request has the status %.40q", state.Status)
		}
		if err := s.pause(ctx, falPause); err != nil {
			return r, err
		}
	}
	var got struct {
		Video falFile `json:"video"`
		Seed  *int64  `json:"seed"`
	}
	if err := s.ask(ctx, http.MethodGet, request, nil, &got); err != nil {
		return r, err
	}
	if got.Video.URL == "" {
		return r, s.Errorf(source.Outage, source.Malformed, "its answer has no video")
	}
	return reply{url: got.Video.URL, seed: got.Seed}, nil
}

// pause waits, unless a recording answers.
func (s *service) pause(ctx context.Context, d time.Duration) error {
	if s.hasty {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
