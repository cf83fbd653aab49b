package run

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"runtime"
	"time"

	"trajgen/outputs/journal"
	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/pipeline/model/gate"
	"trajgen/pipeline/model/scripted"
)

// models are the models that an experiment asks, with what their requests share.
type models struct {
	*opened
	purse
	exchanges
	Scripted   *scripted.Server              // nil without a policy
	clients    []*model.Client               // the models that play the agent
	probes     []func(context.Context) error // of all models, called before the first episode
	swept      model.ByName                  // clients, of a sweep of models; nil without
	fallen     *model.Fallbacks              // clients, if some are fallbacks; nil without
	user       *model.Client                 // plays users; nil without a user_model
	summary    *model.Client                 // writes summaries; nil without a summary_model
	sampling   episode.Sampling
	outages    outages
	processors *gate.Processors
	Room       func() <-chan struct{} // when another episode may begin: those beyond the requests in flight need no memory yet
}

func newModels(on *opened) models {
	machine := gate.Machine{Processors: runtime.GOMAXPROCS(0), Backlog: backlog(), Now: time.Now}
	return models{opened: on, purse: purse{opened: on}, exchanges: exchanges{opened: on}, processors: gate.NewProcessors(machine)}
}

// openModel opens the client, and the embedded server in front of it when a policy plays.
func (m *models) openModel(context.Context) error {
	f := m.File
	cfg := model.Config{
		Settings: f.Model, Patience: f.Requests, Outages: m.outages.tell,
		Proxy: http.ProxyFromEnvironment, Concurrency: f.Play.Workers, Processors: m.processors, Logger: m.Logger, Images: m.images.Read,
	}
	cfg.ToolFormat = cmp.Or(cfg.ToolFormat, model.ToolFormatAuto)
	if err := checkToolChoice(f.Model.ToolChoice, m.Registry); err != nil {
		return err
	}
	if warning := fitFiles(&cfg, f.Play.Workers, openFiles()); warning != "" {
		m.Room = m.processors.Room
		fmt.Fprintln(m.warnings, warning)
	}
	if len(f.Model.Endpoints) == 0 {
		cfg.BaseURL = baseURL(f.Model)
	}
	m.thread(&cfg, "")
	m.pay(&cfg)
	cfg.Window = cmp.Or(f.Context.ContextWindow, cfg.Window)
	if f.Scripted.Policy != "" {
		if err := m.startServer(&cfg); err != nil {
			return err
		}
	} else {
		var err error
		if cfg.APIKey, err = m.apiKey(f.Model.APIKeyEnv, baseURL(f.Model)); err != nil {
			return err
		}
		if cfg.Headers, cfg.Secrets, err = m.headers(); err != nil {
			return err
		}
	}
	m.sampling = samplingOf(f.Model, cfg.Name)
	if len(f.Sweep.Model) > 0 {
		return m.openSwept(cfg)
	}
	client, err := m.openClient(cfg)
	if err != nil {
		return err
	}
	return m.openFallbacks(client, cfg)
}

// agent is the model, or the models, that play the agent.
func (m *models) agent() model.Model {
	switch {
	case m.swept != nil:
		return m.swept
	case m.fallen != nil:
		return m.fallen
	}
	return m.clients[0]
}

func (m *models) startServer(cfg *model.Config) error {
	if cfg.Name == "" {
		cfg.Name = "scripted-" + m.File.Scripted.Policy
	}
	if m.replay != nil {
		cfg.BaseURL = "http://tape.invalid/v1"
		return nil
	}
	scriptedConfig := scripted.Config{Policy: m.File.Scripted.Policy, Skill: m.File.Scripted.Skill, Seed: m.File.Seed, Model: cfg.Name, Logger: m.Logger}
	if m.File.Tape.Replay != "" {
		reader, err := journal.OpenReader(JournalDir(m.File.Tape.Replay))
		if err != nil {
			return fmt.Errorf("open the journal to replay: %w", err)
		}
		m.closers = append(m.closers, reader.Close)
		scriptedConfig.Replay = ReplayFrom(reader)
		m.parts.Replay = replayDigest(reader)
	}
	server, err := scripted.New(scriptedConfig)
	if err != nil {
		return err
	}
	if m.File.Faults.Twins && m.File.Scripted.Remembers() { // which come later, see playTwins
		server.Remember(nil)
	}
	cfg.BaseURL, err = server.Start("127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("start the scripted server: %w", err)
	}
	cfg.TraceHeaders = true
	m.Scripted = server
	m.closers = append(m.closers, server.Close)
	return nil
}
