package daytona

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"trajgen/sandbox/internal/rented"
)

const (
	// firstLook and lastLook are the pauses between polls for a machine's start or end.
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
	// endTime bounds the end of a machine that failed to start.
	endTime = time.Minute
)

// machine is a machine of Daytona.
type machine struct {
	service *service
	id      string
	toolbox string // URL of the machine's toolbox
	use     rented.Image
}

func (m *machine) path() string { return "/sandbox/" + url.PathEscape(m.id) }

// ready waits until the machine has started, and uploads the agent.
func (m *machine) ready(ctx context.Context, made description) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("machine %s has not started in %v", m.id, startTime))
	defer cancel()
	made, err := m.started(ctx, made)
	if err != nil {
		return err
	}
	if made.ToolboxProxyURL == "" {
		var where struct {
			URL string `json:"url"`
		}
		if err := m.service.ask(ctx, http.MethodGet, m.path()+"/toolbox-proxy-url", nil, nil, &where); err != nil {
			return fmt.Errorf("find the toolbox of machine %s: %w", m.id, err)
		}
		made.ToolboxProxyURL = where.URL
	}
	m.toolbox = strings.TrimRight(made.ToolboxProxyURL, "/") + "/" + url.PathEscape(m.id)
	if err := m.upload(ctx); err != nil {
		return fmt.Errorf("upload the agent to %s of machine %s: %w", m.service.config.agent.Path, m.id, err)
	}
	return nil
}

func (m *machine) started(ctx context.Context, d description) (description, error) {
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		switch d.State {
		case "started":
			return d, nil
		case "error", "build_failed", "stopped", "stopping", "archived", "destroyed", "destroying":
			return d, fmt.Errorf("machine %s is %s: %s", m.id, d.State, d.ErrorReason)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return d, context.Cause(ctx)
		}
		d = description{}
		if err := m.service.ask(ctx, http.MethodGet, m.path(), nil, nil, &d); err != nil {
			return d, fmt.Errorf("wait for machine %s: %w", m.id, err)
		}
	}
}

// upload uploads the agent. It may be repeated, as the agent does not run yet.
func (m *machine) upload(ctx context.Context) error {
	a := m.service.config.agent
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, err := w.CreateFormFile("file", "agent")
	if err == nil {
		_, err = part.Write(a.Content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	err = m.service.do(ctx, request{
		method: http.MethodPost, url: m.toolbox + "/files/upload", query: url.Values{"path": {a.Path}},
		body: form.Bytes(), contentType: w.FormDataContentType(), again: true,
	}, nil)
	if err != nil {
		return err
	}
	return m.service.do(ctx, request{
		method: http.MethodPost, url: m.toolbox + "/files/permissions", query: url.Values{"path": {a.Path}, "mode": {"755"}}, again: true,
	}, nil)
}

// Image is known after Start.
func (m *machine) Image() rented.Image { return m.use }

// Start runs the agent on a terminal.
func (m *machine) Start(ctx context.Context) (io.ReadWriteCloser, error) {
	t, err := m.terminal(ctx)
	if err != nil {
		return nil, err
	}
	if m.use, err = t.start(ctx, m.service.config.agent.Path); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

func (m *machine) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	return m.Destroy(ctx)
}

// Destroy deletes the machine and waits until it is gone.
func (m *machine) Destroy(ctx context.Context) error {
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		err := m.service.ask(ctx, http.MethodDelete, m.path(), nil, nil, nil)
		if isStatus(err, http.StatusNotFound) {
			return nil
		}
		if err == nil {
			break
		}
		// It may be changing its state.
		if !isStatus(err, http.StatusConflict) && !isStatus(err, http.StatusBadRequest) {
			return fmt.Errorf("delete machine %s: %w", m.id, err)
		}
		if err := sleep(ctx, pause, err); err != nil {
			return fmt.Errorf("delete machine %s: %w", m.id, err)
		}
	}
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		var d description
		err := m.service.ask(ctx, http.MethodGet, m.path(), nil, nil, &d)
		if isStatus(err, http.StatusNotFound) || err == nil && d.State == "destroyed" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("wait for the end of machine %s: %w", m.id, err)
		}
		if err := sleep(ctx, pause, fmt.Errorf("it is still %s", d.State)); err != nil {
			return fmt.Errorf("wait for the end of machine %s: %w", m.id, err)
		}
	}
}

// sleep waits. When ctx ends, it returns the cause with the reason for waiting.
func sleep(ctx context.Context, d time.Duration, reason error) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", context.Cause(ctx), reason)
	}
}
