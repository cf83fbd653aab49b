package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"trajgen/pipeline/episode"
	"trajgen/pipeline/model"
	"trajgen/sandbox"
	"trajgen/tools/cron"
	"trajgen/tools/home"
	"trajgen/tools/mcp"
	"trajgen/tools/messages"
	"trajgen/tools/plugin"
	"trajgen/tools/twin"
	"trajgen/tools/web"
	"trajgen/tools/web/sites"
)

// services are what tools have beside a sandbox. Each family is opened from its section of the run file by a step, which says what
// closes it and adds the maker of an attempt's part of it.
type services struct {
	*models
	backend func() (sandbox.Backend, error)
	apart   bool // calls are made outside of a run
	web     *web.Web
	twin    *twin.Twin
	plugins *plugin.Set // nil without any
	mcp     *mcp.Set    // nil without any
	makers  []maker
}

// maker makes what an attempt has of a family.
type maker func(attempt) []any

// attempt is whom services are made for.
type attempt struct {
	task *episode.Task
	ep   *episode.Episode
	web  *web.View
	ask  model.Ask
}

// made adds a maker.
func (s *services) made(by maker) { s.makers = append(s.makers, by) }

// Of are the services of an attempt, with or without a run directory.
func (s *services) Of(task *episode.Task, ep *episode.Episode, ask model.Ask) []any {
	a := attempt{task, ep, s.web.View(ep.ID, ep.Attempt, task.Sites...), ask}
	var all []any
	for _, by := range s.makers {
		all = append(all, by(a)...)
	}
	return all
}

// Services are what tools have beside a sandbox outside of a run: a web with some sites, browsers, and what makes pictures, speech
// and videos, where no vision model looks at them. It returns what closes them.
func Services(ctx context.Context, f *File, backend func() (sandbox.Backend, error), id string, names []string) (
	_ []any, _ func() error, err error) {
	if err := sites.Check(names); err != nil {
		return nil, nil, err
	}
	asked := newModels(&opened{File: *f, Logger: slog.New(slog.DiscardHandler)})
	s := &services{models: &asked, backend: backend, apart: true}
	closeAll := func() (err error) {
		for _, each := range slices.Backward(s.closers) {
			err = errors.Join(err, each())
		}
		return err
	}
	for _, open := range []func(context.Context) error{
		s.openTwin, s.openWeb, s.openMixture, s.openHome, s.openMessages, s.openMedia, s.openLab,
	} {
		if err := open(ctx); err != nil {
			return nil, nil, errors.Join(err, closeAll())
		}
	}
	return s.Of(&episode.Task{World: episode.World{Sites: names}}, &episode.Episode{ID: id, Attempt: 1}, askNow), closeAll, nil
}

// askNow asks where no record is kept.
func askNow(_, _ string, _ any, ask func() error) error { return ask() }

// openTwin opens the recording of tools that is replayed. Plugins and MCP servers that it answers for need not be there.
func (s *services) openTwin(context.Context) (err error) {
	if s.twin, err = twin.Open(s.File.Twin); err != nil {
		return err
	}
	s.closers = append(s.closers, s.twin.Close)
	s.parts.Twin = s.twin.Fingerprint()
	s.made(func(a attempt) []any {
		if t := s.twin.Play(a.ep.ID, a.ep.Attempt); t != nil {
			return []any{t}
		}
		return nil
	})
	return nil
}

// openWeb opens what the web tools answer from, the browsers, and the jobs of episodes, which are a state beside those of sites.
func (s *services) openWeb(ctx context.Context) (err error) {
	if s.web, err = OpenWeb(ctx, &s.File, s.backend); err != nil {
		return err
	}
	s.closers = append(s.closers, s.web.Close)
	s.parts.Web = s.web.Fingerprint()
	browsers, closer, err := openBrowsers(s.File.Browser)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, closer)
	s.made(s.jobs)
	s.made(func(a attempt) []any { return []any{a.web, browsers} })
	return nil
}

// jobs are an episode's jobs, and the states that its checks see. In a run, jobs name its toolsets.
func (s *services) jobs(a attempt) []any {
	jobs, err := s.File.Cron.View(a.task)
	if err != nil { // which the survey reports
		return nil
	}
	jobs.Inside = os.Getenv(cron.Variable) != ""
	if s.Registry != nil {
		jobs.Toolsets = func(names []string) error {
			_, err := s.Registry.Resolve(names, nil)
			return err
		}
	}
	return []any{states{a.web, jobs}, jobs}
}

// openHome opens the home of the run.
func (s *services) openHome(context.Context) error {
	lives, err := home.Open(home.Config{Settings: s.File.Home, Replayed: replayed(s.File.Twin, "homeassistant"), Getenv: os.Getenv, Now: time.Now})
	if err != nil {
		return s.onResume(err)
	}
	s.closers = append(s.closers, lives.Close)
	s.made(func(a attempt) []any { return []any{lives.View(a.task.Home, a.ask)} })
	return nil
}

// openMessages opens where messages go.
func (s *services) openMessages(context.Context) error {
	kept := s.File.NoUser || replayed(s.File.Twin, "messaging")
	sends, err := messages.Open(messages.Config{Settings: s.File.Messages, Kept: kept, Getenv: os.Getenv, Now: time.Now})
	if err != nil {
		return s.onResume(err)
	}
	s.closers = append(s.closers, sends.Close)
	s.made(func(a attempt) []any {
		return []any{sends.View(fmt.Sprintf("%s/%d", a.ep.ID, a.ep.Attempt), a.task.Channels, a.ask)}
	})
	return nil
}
