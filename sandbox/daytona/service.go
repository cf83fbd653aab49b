package daytona

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"trajgen/sandbox"
	"trajgen/sandbox/internal/rented"
)

const (
	markLabel = "trajgen.instance"
	idLabel   = "trajgen.id"
	// connectTime bounds the first request to the service.
	connectTime = time.Minute
	// startTime bounds how long a machine takes to start, its image to be fetched included.
	startTime = 20 * time.Minute
	// smallestDisk must hold the image, too.
	smallestDisk = 3 // GiB
)

// service is the client of Daytona.
type service struct {
	*client
	mark string // of this instance's machines
}

// connect checks the key.
func connect(ctx context.Context, settings map[string]string, mark string, logger *slog.Logger) (rented.Service, error) {
	c, err := parse(settings)
	if err != nil {
		return nil, err
	}
	s := &service{client: newClient(c, logger), mark: mark}
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	if _, err := s.list(ctx); err != nil {
		s.http.CloseIdleConnections()
		return nil, err
	}
	return s, nil
}

// createSandbox is the request for a machine.
type createSandbox struct {
	Snapshot           string            `json:"snapshot,omitempty"`
	BuildInfo          *buildInfo        `json:"buildInfo,omitempty"`
	User               string            `json:"user,omitempty"`
	Labels             map[string]string `json:"labels"`
	Public             bool              `json:"public"`
	NetworkBlockAll    bool              `json:"networkBlockAll"`
	Target             string            `json:"target,omitempty"`
	CPU                int               `json:"cpu,omitempty"`    // processors
	Memory             int               `json:"memory,omitempty"` // GiB
	Disk               int               `json:"disk,omitempty"`   // GiB
	AutoStopInterval   int               `json:"autoStopInterval"` // minutes
	AutoDeleteInterval int               `json:"autoDeleteInterval"`
}

type buildInfo struct {
	DockerfileContent string `json:"dockerfileContent"`
}

// description is the API's description of a machine.
type description struct {
	ID              string `json:"id"`
	State           string `json:"state"`
	ErrorReason     string `json:"errorReason"`
	ToolboxProxyURL string `json:"toolboxProxyUrl"`
}

// Create makes a machine with the agent in it.
func (s *service) Create(ctx context.Context, order rented.Order) (rented.Machine, error) {
	body := s.order(order.Spec)
	var made description
	if err := s.ask(ctx, http.MethodPost, "/sandbox", nil, body, &made); err != nil {
		err = fmt.Errorf("create a machine: %w", err)
		if refusal(err) {
			err = rented.None{Cause: err}
		}
		return nil, err
	}
	if made.ID == "" {
		return nil, errors.New("create a machine: the reply names none")
	}
	m := &machine{service: s, id: made.ID}
	if err := m.ready(ctx, made); err != nil {
		return nil, errors.Join(err, m.end(ctx))
	}
	return m, nil
}

// order translates a spec. It sets no interval after the stop: Daytona deletes a stopped machine at once.
func (s *service) order(spec sandbox.Spec) createSandbox {
	body := createSandbox{
		User: s.config.user, Target: s.config.target, Labels: map[string]string{markLabel: s.mark, idLabel: spec.ID},
		NetworkBlockAll: spec.Network != sandbox.NetworkFull, AutoStopInterval: s.config.autostop,
	}
	reference := spec.Image
	if reference == "" {
		reference = s.config.image
	}
	snapshot, is := strings.CutPrefix(reference, snapshotPrefix)
	if is || reference == "" {
		body.Snapshot = snapshot
		return body
	}
	const gib = 1 << 30
	body.BuildInfo = &buildInfo{DockerfileContent: "FROM " + reference + "\n"}
	body.Memory = int((spec.Limits.Memory + gib - 1) / gib)
	body.Disk = max(smallestDisk, int((spec.Limits.Disk+gib-1)/gib))
	body.CPU = max(1, int(spec.Limits.CPUs+0.999))
	return body
}

// list returns the machines of this instance.
func (s *service) list(ctx context.Context) ([]description, error) {
	labels, err := json.Marshal(map[string]string{markLabel: s.mark})
	if err != nil {
		return nil, err
	}
	var all []description
	query := url.Values{"labels": {string(labels)}, "limit": {"100"}}
	for {
		var page struct {
			Items      []description `json:"items"`
			NextCursor *string       `json:"nextCursor"`
		}
		if err := s.ask(ctx, http.MethodGet, "/sandbox", query, nil, &page); err != nil {
			return nil, fmt.Errorf("list machines: %w", err)
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil || *page.NextCursor == "" {
			return all, nil
		}
		query.Set("cursor", *page.NextCursor)
	}
}

// Sweep deletes all machines of the instance.
func (s *service) Sweep(ctx context.Context) error {
	left, err := s.list(ctx)
	errs := []error{err}
	for _, d := range left {
		errs = append(errs, (&machine{service: s, id: d.ID}).Destroy(ctx))
	}
	return errors.Join(errs...)
}

// Close closes idle connections.
func (s *service) Close() error {
	s.http.CloseIdleConnections()
	return nil
}
