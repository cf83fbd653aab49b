package media

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"io"

	"github.com/sashabaranov/go-openai"

	"trajgen/pipeline/episode"
	"trajgen/tools/web/source"
)

// openai is the API of api.openai.com, and of many servers that speak it.
func (s *service) openai() *openai.Client {
	config := openai.DefaultConfig(s.key)
	config.BaseURL, config.HTTPClient = s.base, s.client
	return openai.NewClientWithConfig(config)
}

func (s *service) openaiImage(ctx context.Context, model, prompt string, size image.Point) (r reply, err error) {
	got, err := s.openai().CreateImage(ctx, openai.ImageRequest{
		Prompt: prompt, Model: model, N: 1, Size: fmt.Sprintf("%dx%d", size.X, size.Y), OutputFormat: openai.CreateImageOutputFormatPNG,
	})
	if err != nil {
		return r, s.undecoded(err)
	}
	if len(got.Data) == 0 {
		return r, s.fault(source.Outage, source.Malformed, "its answer has no picture")
	}
	r.url, r.revised = got.Data[0].URL, got.Data[0].RevisedPrompt
	if got.Usage.TotalTokens > 0 {
		r.usage = &episode.Usage{Prompt: got.Usage.InputTokens, Completion: got.Usage.OutputTokens, Reported: true}
	}
	if text := got.Data[0].B64JSON; text != "" {
		if r.data, err = base64.StdEncoding.DecodeString(text); err != nil {
			return r, s.fault(source.Outage, source.Malformed, "its picture is not base64: %v", err)
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
		return nil, s.undecoded(err)
	}
	defer got.Close()
	return io.ReadAll(got) // which is in memory
}

// undecoded is the error of an answer that the library cannot read, unless the request failed before.
func (s *service) undecoded(err error) error {
	failed := s.failure(err)
	if f, ok := errors.AsType[*source.Error](err); ok {
		return f
	}
	if _, ok := errors.AsType[*source.Error](failed); !ok {
		return failed
	}
	return s.fault(source.Outage, source.Malformed, "its answer cannot be read: %s", s.hide(err.Error()))
}
