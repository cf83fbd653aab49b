package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/sandbox"
	"trajgen/tools"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// openPages opens the model that summarises long pages, if the run names one.
func (s *services) openPages(context.Context) error {
	of := s.File.Web.Summary
	if of.Model == "" {
		return nil
	}
	client, err := s.openSide(sideModel{record.Web, of.Model, of.BaseURL, of.APIKeyEnv}, model.Config{
		Settings: model.Settings{MaxTokens: tools.SummaryTokens},
		Patience: model.Patience{Timeout: tools.SummaryTime, Retries: 2},
	})
	if err != nil {
		return err
	}
	s.made(func(a attempt) []any {
		return []any{&tools.Summarizer{Model: client, Settings: of, Side: s.side(a.ep, "web summary", a.ask)}}
	})
	return nil
}

// OpenWeb opens what web tools answer from. The text of PDF files is made in sandboxes of the backend.
func OpenWeb(ctx context.Context, f *File, backend func() (sandbox.Backend, error)) (*web.Web, error) {
	documents := &pdf{backend: backend}
	return web.Open(ctx, web.Config{Settings: f.Web, KeyEnvs: f.Media.Variables(), Getenv: os.Getenv, Now: time.Now, PDF: documents.text})
}

// pdf makes the text of PDF files with pdftotext, each in a sandbox of its own, which reaches nothing.
type pdf struct {
	backend func() (sandbox.Backend, error)
	opened  atomic.Int64
}

const (
	pdfMemory = 256 << 20
	pdfTime   = 20 * time.Second
	pdfText   = 8 << 20 // bytes that are read of a text
)

func (p *pdf) text(ctx context.Context, body []byte) (text string, err error) {
	backend, err := p.backend()
	if err != nil {
		return "", noPDF(err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pdfTime, fmt.Errorf("it took longer than %s", pdfTime))
	defer cancel()
	spec := sandbox.Spec{
		ID: fmt.Sprintf("pdf-%d-%d", os.Getpid(), p.opened.Add(1)), Limits: sandbox.Limits{Memory: pdfMemory},
	}
	sb, err := backend.Open(ctx, spec)
	if err != nil {
		return "", noPDF(err)
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	if err := sb.Files().Write(ctx, sandbox.FileWrite{Path: "page.pdf", Data: body}); err != nil {
		return "", err
	}
	ran, err := sandbox.Run(ctx, sb, sandbox.Command{Args: []string{"pdftotext", "-enc", "UTF-8", "page.pdf", "page.txt"}}, sandbox.RunOptions{})
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		return "", noPDF(errors.New("pdftotext is missing in sandboxes: install poppler-utils"))
	case err != nil:
		return "", err
	case ran.Exit.Code != 0:
		return "", fmt.Errorf("pdftotext ended with %d: %s", ran.Exit.Code, ran.Stderr.Bytes())
	}
	data, _, err := sb.Files().Read(ctx, "page.txt", 0, pdfText)
	return string(data), err
}

func noPDF(err error) error {
	return source.Errorf(source.Operator, source.Unavailable, "the text of a PDF file cannot be made: %v", err)
}
