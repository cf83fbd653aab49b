package media

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"io"
	"net/http"

	"github.com/sashabaranov/go-openai"

	"trajgen/pipeline/episode"
	"trajgen/tools/web/source"
)

// openai is the API of api.openai.com, and of many servers that speak it.
func (s *service) openai() *openai.Client {
	config := openai.DefaultConfig(s.key)
	config.BaseURL, config.HTTPClient = s.base, &http.Client{Transport: s.Client}
	return openai.NewClientWithConfig(config)
}

func (s *service) openaiImage(ctx context.Context, model, prompt string, size image.Point) (r reply, err error) {
	got, err := s.openai().CreateImage(ctx, openai.ImageRequest{
		Prompt: prompt, Model: model, N: 1, Size: fmt.Sprintf("%dx%d", size.X, size.Y), OutputFormat: openai.CreateImageOutputFormatPNG,
	})
	if err != nil {
		return r, s.undecoded(ctx, err)
	}
	if len(got.Data) == 0 {
		return r, s.Errorf(source.Outage, source.Malformed, "its answer has no picture")
	}
	r.url, r.revised = got.Data[0].URL, got.Data[0].RevisedPrompt
	r.usage = episode.Usage{Prompt: got.Usage.InputTokens, Completion: got.Usage.OutputTokens}
	if text := got.Data[0].B64JSON; text != "" {
		if r.data, err = base64.StdEncoding.DecodeString(text); err != nil {
			return r, s.Errorf(source.Outage, source.Malformed, "its picture is not base64: %v", err)
		}
	}
	return r, nil
}

func (s *service) openaiSpeech(ctx context.Context, model, voice, text, format string) ([]byte, error) {
	got, err := s.openai().CreateSpeech(ctx, openai.CreateSpeechRequest{
		Model: openai.SpeechModel(model), Input: text, Voice: openai.SpeechVoice(voice),
		ResponseFormat: openai.SpeechResponseFormat(format),
	})
	if err != nil {
		return nil, s.undecoded(ctx, err)
	}
	defer got.Close()
	return io.ReadAll(got) // which is in memory
}

// undecoded is the error of an answer that the library cannot read, unless the request failed before.
func (s *service) undecoded(ctx context.Context, err error) error {
	if failed, ok := errors.AsType[*source.Error](err); ok {
		return failed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return s.Errorf(source.Outage, source.Malformed, "its answer cannot be read: %s", s.Excerpt(err.Error()))
}
