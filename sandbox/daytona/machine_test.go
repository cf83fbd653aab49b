package daytona_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"trajgen/sandbox"
)

// machine is what the service calls a sandbox.
type machine struct {
	server *Server
	id     string
	number int
	order  order

	once sync.Once
	err  error

	mu        sync.Mutex // guards what follows
	state     string
	reason    string
	box       sandbox.Sandbox
	terminals map[string]*terminal
	deleted   bool
}

// order is what a machine is to be.
type order struct {
	Snapshot  string `json:"snapshot"`
	BuildInfo *struct {
		DockerfileContent string `json:"dockerfileContent"`
	} `json:"buildInfo"`
	User               string            `json:"user"`
	Labels             map[string]string `json:"labels"`
	Public             *bool             `json:"public"`
	NetworkBlockAll    *bool             `json:"networkBlockAll"`
	Target             string            `json:"target"`
	CPU                *int              `json:"cpu"`
	Memory             *int              `json:"memory"`
	Disk               *int              `json:"disk"`
	AutoStopInterval   *int              `json:"autoStopInterval"`
	AutoDeleteInterval *int              `json:"autoDeleteInterval"`
}

// check says what the service would not make.
func (o order) check() error {
	resources := o.CPU != nil || o.Memory != nil || o.Disk != nil
	var errs []error
	switch {
	case o.BuildInfo != nil && o.Snapshot != "":
		errs = append(errs, errors.New("Cannot specify a snapshot when using a build info entry"))
	case o.BuildInfo != nil && !strings.HasPrefix(o.BuildInfo.DockerfileContent, "FROM "):
		errs = append(errs, errors.New("buildInfo.dockerfileContent has no FROM"))
	case o.BuildInfo == nil && resources:
		errs = append(errs, errors.New("Cannot specify Sandbox resources when using a snapshot"))
	case o.Snapshot != "" && o.Snapshot != Snapshot:
		errs = append(errs, fmt.Errorf("Snapshot %s not found", o.Snapshot))
	}
	if resources && (*o.CPU < 1 || *o.CPU > 4 || *o.Memory < 1 || *o.Memory > 8 || *o.Disk < 1 || *o.Disk > 10) {
		errs = append(errs, errors.New("resources beyond the limits of a sandbox"))
	}
	if o.AutoStopInterval == nil || *o.AutoStopInterval < 0 || o.AutoDeleteInterval == nil {
		errs = append(errs, errors.New("a test's machine must have its intervals"))
	}
	if o.Public == nil || *o.Public || o.NetworkBlockAll == nil {
		errs = append(errs, errors.New("a test's machine must not be public, and its network must be said"))
	}
	if o.User != "root" {
		errs = append(errs, fmt.Errorf("user %q: there is but root", o.User))
	}
	if o.Target != "" && o.Target != "eu" && o.Target != "us" {
		errs = append(errs, fmt.Errorf("region %s not found", o.Target))
	}
	return errors.Join(errs...)
}

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	var o order
	if !queried(w, r) || !decode(w, r, &o) {
		return
	}
	if err := o.check(); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	s.mu.Lock()
	s.next++
	m := &machine{server: s, number: s.next, id: fmt.Sprintf("0badcafe-0000-4000-8000-%012d", s.next), order: o, state: "creating", terminals: map[string]*terminal{}}
	s.sandboxes[m.id] = m
	s.mu.Unlock()
	go m.boot()
	reply(w, http.StatusOK, m.describe())
}

// boot makes the machine, some time after its creation was answered.
func (m *machine) boot() {
	fail := func(state, reason string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.state, m.reason = state, reason
	}
	spec := sandbox.Spec{ID: "m" + strconv.Itoa(m.number), Limits: sandbox.Limits{Disk: 2 << 30, Processes: 1000}}
	if !*m.order.NetworkBlockAll {
		spec.Network = sandbox.NetworkFull
	}
	if b := m.order.BuildInfo; b != nil {
		if b.DockerfileContent != "FROM "+Image+"\n" {
			fail("build_failed", "manifest unknown: "+b.DockerfileContent)
			return
		}
		spec.Limits.Memory, spec.Limits.CPUs = int64(*m.order.Memory)<<30, float64(*m.order.CPU)
	}
	box, err := m.server.machines.Open(context.Background(), spec)
	if err != nil {
		fail("error", err.Error())
		return
	}
	m.mu.Lock()
	m.box, m.state = box, "started"
	deleted := m.deleted
	m.mu.Unlock()
	if deleted {
		_ = box.Close()
	}
}

func (m *machine) describe() map[string]any {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := map[string]any{
		"id": m.id, "organizationId": Organization, "name": m.id, "user": m.order.User, "env": map[string]string{}, "labels": m.order.Labels,
		"public": false, "networkBlockAll": *m.order.NetworkBlockAll, "target": "us", "cpu": 1, "gpu": 0, "memory": 1, "disk": 3,
		"state": m.state, "desiredState": "started", "createdAt": time.Now().UTC().Format(time.RFC3339), "toolboxProxyUrl": m.server.root + "/toolbox",
	}
	if m.reason != "" {
		d["errorReason"] = m.reason
	}
	// Some versions leave it out, for those who ask.
	if m.number%2 == 0 {
		delete(d, "toolboxProxyUrl")
	}
	return d
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	if !queried(w, r, "labels", "limit", "cursor") {
		return
	}
	q := r.URL.Query()
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > 200 {
		refuse(w, http.StatusBadRequest, "limit must be between 1 and 200")
		return
	}
	var labels map[string]string
	if text := q.Get("labels"); text != "" {
		if err := json.Unmarshal([]byte(text), &labels); err != nil {
			refuse(w, http.StatusBadRequest, "labels: "+err.Error())
			return
		}
	}
	after, _ := strconv.Atoi(q.Get("cursor"))
	items, cursor := []map[string]any{}, any(nil)
	for _, m := range s.all() {
		matches := m.number > after
		for name, value := range labels {
			matches = matches && m.order.Labels[name] == value
		}
		if !matches {
			continue
		}
		if len(items) == min(limit, 2) {
			cursor = strconv.Itoa(m.number - 1)
			break
		}
		items = append(items, m.describe())
	}
	reply(w, http.StatusOK, map[string]any{"items": items, "nextCursor": cursor})
}

func (s *Server) describe(w http.ResponseWriter, _ *http.Request, m *machine) {
	reply(w, http.StatusOK, m.describe())
}

// remove deletes a machine, which takes a moment after it was answered.
func (s *Server) remove(w http.ResponseWriter, _ *http.Request, m *machine) {
	m.mu.Lock()
	busy := m.state == "creating"
	if !busy {
		m.state = "destroying"
	}
	m.mu.Unlock()
	if busy {
		refuse(w, http.StatusConflict, "Sandbox state change in progress")
		return
	}
	go func() { _ = m.destroy() }()
	reply(w, http.StatusOK, m.describe())
}

// destroy ends the machine.
func (m *machine) destroy() error {
	m.once.Do(func() {
		m.mu.Lock()
		m.deleted = true
		box := m.box
		m.mu.Unlock()
		if box != nil {
			m.err = box.Close()
		}
		m.drop()
		m.server.mu.Lock()
		delete(m.server.sandboxes, m.id)
		m.server.mu.Unlock()
	})
	return m.err
}

// drop ends the connections to the machine's terminals.
func (m *machine) drop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.terminals {
		t.drop()
	}
}
