package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/sandbox"
	"trajgen/tools"
	"trajgen/tools/media"
	"trajgen/tools/twin"
	"trajgen/tools/web"
	"trajgen/tools/web/sites"
	"trajgen/tools/web/source"
)

// openWeb opens what the web tools answer from.
func (e *Experiment) openWeb(ctx context.Context) (err error) {
	if e.web, err = OpenWeb(ctx, &e.File, e.sandboxes); err != nil {
		return err
	}
	e.closers = append(e.closers, e.web.Close)
	e.parts.Web = e.web.Fingerprint()
	browsers, closer, err := openBrowsers(e.File.Browser)
	if err != nil {
		return err
	}
	e.browsers, e.closers = browsers, append(e.closers, closer)
	return nil
}

// services are what an episode's tools have beside a sandbox, with or without a run directory.
func (e *Experiment) services(task *episode.Task, ep *episode.Episode, ask model.Ask) []any {
	view := e.web.View(ep.ID, ep.Attempt, task.Sites...)
	all := append(e.File.cronServices(task, view, e.Registry), view, e.mediaView(ep, view, ask), e.browsers)
	if t := e.twin.Play(ep.ID, ep.Attempt); t != nil {
		all = append(all, t)
	}
	if e.mcp != nil {
		all = append(all, e.mcpOf(task, ep, ask))
	}
	if e.lab != nil {
		all = append(all, e.lab.View(ep.ID, ep.Attempt, ask))
	}
	all = append(append(all, e.beside(ep, ask)...), e.home.View(task.Home, ask),
		e.messages.View(fmt.Sprintf("%s/%d", ep.ID, ep.Attempt), task.Channels, ask))
	if e.pages == nil {
		return all
	}
	return append(all, &tools.Summarizer{
		Model: e.pages, Settings: e.File.Web.Summary, Side: e.side(ep, "web summary", ask),
	})
}

// Services are what tools have beside a sandbox outside of a run: a web with some sites, browsers, and what makes pictures, speech
// and videos, where no vision model looks at them. It returns what closes them.
func Services(ctx context.Context, f *File, backend func() (sandbox.Backend, error), id string, names []string) (
	_ []any, _ func() error, err error) {
	if err := sites.Check(names); err != nil {
		return nil, nil, err
	}
	var closers []func() error
	closeAll := func() (err error) {
		for _, each := range slices.Backward(closers) {
			err = errors.Join(err, each())
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll())
		}
	}()
	seen, err := OpenWeb(ctx, f, backend)
	if err != nil {
		return nil, nil, err
	}
	closers = append(closers, seen.Close)
	makes, err := media.Open(media.Config{Settings: f.Media, Getenv: os.Getenv, Now: time.Now, Replay: seen.Mode() == web.Replay})
	if err != nil {
		return nil, nil, err
	}
	closers = append(closers, makes.Close)
	browsers, closeBrowsers, err := openBrowsers(f.Browser)
	if err != nil {
		return nil, nil, err
	}
	closers = append(closers, closeBrowsers)
	recorded, err := twin.Open(f.Twin)
	if err != nil {
		return nil, nil, err
	}
	closers = append(closers, recorded.Close)
	view := seen.View(id, 1, names...)
	all := append(f.cronServices(&episode.Task{}, view, nil), view, makes.View(media.Attempt{Web: view}), browsers)
	if t := recorded.Play(id, 1); t != nil {
		all = append(all, t)
	}
	asked := newModels(&opened{File: *f, Logger: slog.New(slog.DiscardHandler)})
	if err := asked.openMixture(ctx); err != nil {
		return nil, nil, err
	}
	closers = append(closers, asked.closers...)
	all = append(all, asked.beside(&episode.Episode{ID: id, Attempt: 1}, askNow)...)
	lives, err := f.home()
	if err != nil {
		return nil, nil, err
	}
	closers = append(closers, lives.Close)
	sends, err := f.messages()
	if err != nil {
		return nil, nil, err
	}
	closers = append(closers, sends.Close)
	all = append(all, lives.View(nil, askNow), sends.View(id, nil, askNow))
	lab, err := f.lab() // whose trainings go on: the next call is about them
	if lab != nil {
		all = append(all, lab.View("", 0, nil))
	}
	return all, closeAll, err
}

// openPages opens the model that summarises long pages, if the run names one.
func (e *Experiment) openPages(context.Context) (err error) {
	s := e.File.Web.Summary
	if s.Model == "" {
		return nil
	}
	e.pages, err = e.openSide(sideModel{record.Web, s.Model, s.BaseURL, s.APIKeyEnv}, model.Config{
		Settings: model.Settings{MaxTokens: tools.SummaryTokens},
		Patience: model.Patience{Timeout: tools.SummaryTime, Retries: 2},
	})
	return err
}

// OpenWeb opens what web tools answer from. The text of PDF files is made in sandboxes of the backend.
func OpenWeb(ctx context.Context, f *File, backend func() (sandbox.Backend, error)) (*web.Web, error) {
	documents := &pdf{backend: backend}
	return web.Open(ctx, web.Config{Settings: f.Web, KeyEnvs: f.Media.KeyEnvs(), Getenv: os.Getenv, Now: time.Now, PDF: documents.text})
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
