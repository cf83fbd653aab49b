package run

import (
	"context"
	"os"
	"time"

	"trajgen/tools/home"
	"trajgen/tools/messages"
)

// openHome opens the home of the run.
func (e *Experiment) openHome(context.Context) (err error) {
	if e.home, err = home.Open(home.Config{Settings: e.File.Home, Getenv: os.Getenv, Now: time.Now}); err != nil {
		return e.onResume(err)
	}
	e.closers = append(e.closers, e.home.Close)
	return nil
}

// openMessages opens where messages go.
func (e *Experiment) openMessages(context.Context) (err error) {
	if e.messages, err = messages.Open(messages.Config{Settings: e.File.Messages, Kept: e.File.NoUser, Getenv: os.Getenv, Now: time.Now}); err != nil {
		return e.onResume(err)
	}
	e.closers = append(e.closers, e.messages.Close)
	return nil
}
