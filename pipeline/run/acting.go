package run

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"trajgen/registry"
	"trajgen/tools"
	"trajgen/tools/home"
	"trajgen/tools/messages"
)

// openHome opens the home of the run.
func (e *Experiment) openHome(context.Context) (err error) {
	if e.home, err = e.File.home(); err != nil {
		return e.onResume(err)
	}
	e.closers = append(e.closers, e.home.Close)
	return nil
}

func (f *File) home() (*home.Home, error) {
	return home.Open(home.Config{Settings: f.Home, Replayed: f.replayed("homeassistant"), Getenv: os.Getenv, Now: time.Now})
}

// openMessages opens where messages go.
func (e *Experiment) openMessages(context.Context) (err error) {
	if e.messages, err = e.File.messages(); err != nil {
		return e.onResume(err)
	}
	e.closers = append(e.closers, e.messages.Close)
	return nil
}

func (f *File) messages() (*messages.Messenger, error) {
	kept := f.NoUser || f.replayed("messaging")
	return messages.Open(messages.Config{Settings: f.Messages, Kept: kept, Getenv: os.Getenv, Now: time.Now})
}

// replayed reports whether a recording answers all calls of a toolset that acts outside of the machine.
func (f *File) replayed(toolset string) bool {
	return !slices.ContainsFunc(tools.Builtin(), func(t registry.Tool) bool {
		return t.Toolset == toolset && !f.Twin.Answers(t.Name)
	})
}

// outside says of built-in tools who answers them where the run file decides that. A home and messages that are the episode's own
// state are not outside of it.
func (f *File) outside(all []registry.Tool) []registry.Tool {
	for i := range all {
		t := &all[i]
		switch {
		case t.Toolset == "homeassistant" && f.Home.Live():
			t.Outside, t.Version = "home", f.Home.URL
		case t.Toolset == "messaging" && f.Messages.Live() && !f.NoUser:
			t.Outside, t.Version = "messages", strings.Join(f.Messages.Channels(), "\n")
		case t.Toolset == "rl" && len(f.RL.Environments) > 0:
			settings, _ := json.Marshal(f.RL) // values of a YAML file
			t.Outside, t.Version = "rl", string(settings)
		}
	}
	return all
}
