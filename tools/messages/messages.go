// Package messages sends an agent's messages: into the outbox of its episode, or through services that the run file names.
package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"trajgen/pipeline/model"
	"trajgen/pipeline/model/record"
	"trajgen/tools/messages/outbox"
	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// Config says what is opened.
type Config struct {
	Settings Settings
	Kept     bool // messages stay in the outbox, whatever the settings say: nothing is sent
	Getenv   func(string) string
	Now      func() time.Time
}

// Messenger is where the messages of a run go. All episodes share it; each attempt has a View.
type Messenger struct {
	channels []string
	services map[string]service // none where messages stay in the outbox
	live     *http.Transport
}

// service sends messages. key is the same when the same message is sent again. An error is a *source.Error unless ctx has ended.
type service interface {
	send(ctx context.Context, m outbox.Message, key string) (id string, err error)
	react(ctx context.Context, r outbox.Reaction, add bool) error
}

// Unsupported is the class of what a service cannot do.
const Unsupported = source.Unsupported

// Open opens what the settings name. Nothing is sent.
func Open(c Config) (*Messenger, error) {
	m := &Messenger{channels: c.Settings.Channels(), services: map[string]service{}, live: http.DefaultTransport.(*http.Transport).Clone()}
	if c.Kept {
		return m, nil
	}
	var problems []error
	for _, env := range c.Settings.Variables() {
		if c.Getenv(env) == "" {
			problems = append(problems, fmt.Errorf("messages: the key is missing: set %s", env))
		}
	}
	with := func(key string) provider.Config {
		return provider.Config{Key: c.Getenv(key), Transport: m.live, Now: c.Now}
	}
	s := c.Settings
	for name, b := range s.bots() {
		config := b.client(name, with(b.TokenEnv))
		client := provider.NewClient(config)
		switch {
		case len(b.Channels) == 0:
		case name == "telegram":
			m.services[name] = &telegram{client, config.Key}
		case name == "discord":
			m.services[name] = &discord{client}
		case name == "slack":
			m.services[name] = &slack{client, provider.NewClient(provider.ClientConfig{Config: provider.Config{Name: name, Transport: m.live, Now: c.Now}})}
		}
	}
	if len(s.Email.Channels) > 0 {
		m.services["email"] = &email{s.Email, c.Getenv(s.Email.PasswordEnv)}
	}
	if len(s.Webhook.Channels) > 0 {
		hook := bot{Service: Service{TokenEnv: s.Webhook.TokenEnv}, auth: "Authorization:Bearer ", judge: refusals}
		m.services["webhook"] = &webhook{provider.NewClient(hook.client("webhook", with(hook.TokenEnv))), s.Webhook.Channels}
	}
	return m, errors.Join(problems...)
}

// refusals says that a recipient who is refused is the agent's to mend.
func refusals(status int, body []byte) *source.Error {
	if status != http.StatusForbidden && status != http.StatusNotFound {
		return nil
	}
	return source.Errorf(source.Agent, fmt.Sprint("http_", status), "the service refuses this channel or message (status %d)", status)
}

// Close ends the connections that are kept.
func (m *Messenger) Close() error {
	m.live.CloseIdleConnections()
	return nil
}

// View is the messages of one attempt. Its methods may be called from many goroutines; an error is a *source.Error unless ctx has ended.
type View struct {
	*Messenger
	*outbox.Outbox
	attempt string
	ask     model.Ask
}

// View is the messages of an attempt, which has a name of its own, with the channels of its task, or those of the settings alone.
func (m *Messenger) View(attempt string, channels []string, ask model.Ask) *View {
	if len(m.channels) > 0 {
		channels = m.channels
	}
	return &View{m, outbox.New(channels), attempt, ask}
}

// Join gives a subagent the outbox that is among its parent's services.
func (v *View) Join(services []any) {
	for _, service := range services {
		if of, ok := service.(*View); ok {
			v.Outbox = of.Outbox
		}
	}
}

// Mode is what becomes of messages.
func (v *View) Mode() string {
	if len(v.services) > 0 {
		return "sent"
	}
	return "kept"
}

// Find resolves a target.
func (v *View) Find(target string) (channel, thread string, err error) {
	channel, thread, ok := outbox.Find(v.Outbox.Channels(), target)
	if !ok {
		err = source.Errorf(source.Agent, "no_channel", "channel %.200q does not exist (have %s)", target, strings.Join(v.Outbox.Channels(), ", "))
	}
	return channel, thread, err
}

// sendTime bounds what one message takes, with its files and its tries.
const sendTime = 45 * time.Second

// Send sends a message. key distinguishes the calls of an attempt: one whose record says that it was begun, and not how it ended, is
// not sent again.
func (v *View) Send(ctx context.Context, key string, m outbox.Message) (id string, err error) {
	err = v.once(ctx, "send "+key, &id, func(ctx context.Context, s service) (err error) {
		id, err = s.send(ctx, m, v.attempt+" "+key)
		return err
	}, m.Channel)
	if err != nil {
		return "", err
	}
	kept, err := v.Outbox.Send(m)
	if err != nil {
		return "", source.Errorf(source.Agent, "outbox_full", "%v", err)
	}
	if v.Mode() == "kept" {
		id = kept
	}
	return id, nil
}

// React adds a reaction to a message, or takes it away.
func (v *View) React(ctx context.Context, key string, r outbox.Reaction, add bool) error {
	err := v.once(ctx, fmt.Sprintf("react %v %s", add, key), new(bool), func(ctx context.Context, s service) error {
		return s.react(ctx, r, add)
	}, r.Channel)
	if err != nil {
		return err
	}
	if err := v.Outbox.React(r, add); err != nil && v.Mode() == "kept" {
		return source.Errorf(source.Agent, "no_reaction", "%v", err)
	}
	return nil
}

// once has a service do something at most once: before it begins and when it has ended, the record of the attempt says so. Where
// messages are kept it does nothing.
func (v *View) once(ctx context.Context, question string, answer any, do func(context.Context, service) error, channel string) error {
	platform, _, _ := strings.Cut(channel, ":")
	s, ok := v.services[platform]
	if !ok {
		return nil
	}
	unknown := source.Errorf(source.Agent, "unknown_end", "this was begun before an interruption, and may have been done; it is not done again")
	return source.Once(v.ask, record.Message, question, answer, unknown, func() error {
		limited, cancel := context.WithTimeoutCause(ctx, sendTime, source.Errorf(source.Outage, source.Unavailable, "%s does not answer within %s", platform, sendTime))
		defer cancel()
		return do(limited, s)
	})
}

// Sent is what was sent, for a verifier.
func (v *View) Sent() (json.RawMessage, error) { return v.Outbox.Outbox() }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
