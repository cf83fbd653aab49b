package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/sandbox"
	"trajgen/tools/web"
	"trajgen/tools/web/source"
)

// openWeb opens what the web tools answer from.
func (e *Experiment) openWeb(ctx context.Context) (err error) {
	if e.web, err = OpenWeb(ctx, e.File.Web, e.sandboxes); err != nil {
		return err
	}
	e.closers = append(e.closers, e.web.Close)
	e.parts.Web = e.web.Fingerprint()
	return nil
}

// services are what an episode's tools have beside a sandbox, with or without a run directory.
func (e *Experiment) services(_ *episode.Task, ep *episode.Episode) []any {
	return []any{e.web.View(ep.ID, ep.Attempt)}
}

// OpenWeb opens what web tools answer from. The text of PDF files is made in sandboxes of the backend.
func OpenWeb(ctx context.Context, s web.Settings, backend func() (sandbox.Backend, error)) (*web.Web, error) {
	documents := &pdf{backend: backend}
	return web.Open(ctx, web.Config{Settings: s, Getenv: os.Getenv, Now: time.Now, PDF: documents.text})
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
