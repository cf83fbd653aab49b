package messages

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strings"
)

// Settings say where messages go, as in the run file. Without any, they stay in the episode's outbox.
type Settings struct {
	Telegram Service `yaml:"telegram,omitempty" flag:"messages-telegram" experiment:"given"`
	Discord  Service `yaml:"discord,omitempty" flag:"messages-discord" experiment:"given"`
	Slack    Service `yaml:"slack,omitempty" flag:"messages-slack" experiment:"given"`
	Email    Email   `yaml:"email,omitempty" flag:"messages-email" experiment:"given"`
	Webhook  Webhook `yaml:"webhook,omitempty" flag:"messages-webhook" experiment:"given"`
}

// Service is a service that bots speak to.
type Service struct {
	Channels []string `yaml:"channels,omitempty"`  // ids of the channels that an agent may send to
	TokenEnv string   `yaml:"token_env,omitempty"` // default TELEGRAM_BOT_TOKEN, DISCORD_BOT_TOKEN, SLACK_BOT_TOKEN
	BaseURL  string   `yaml:"base_url,omitempty"`  // default: the service's own
}

// Email is a server that takes mail.
type Email struct {
	Channels    []string `yaml:"channels,omitempty"` // addresses that an agent may send to
	Server      string   `yaml:"server,omitempty"`   // HOST:PORT
	From        string   `yaml:"from,omitempty"`
	User        string   `yaml:"user,omitempty"`         // default: from
	PasswordEnv string   `yaml:"password_env,omitempty"` // without it the server wants none
	TLS         string   `yaml:"tls,omitempty"`          // starttls, the default; tls, from the first byte; or none
}

// Webhook takes messages as JSON.
type Webhook struct {
	Channels map[string]string `yaml:"channels,omitempty"`  // name → URL
	TokenEnv string            `yaml:"token_env,omitempty"` // sent as a bearer token, if named
}

// Live reports whether messages leave the machine.
func (s Settings) Live() bool { return len(s.Channels()) > 0 }

// Channels are where an agent may send to.
func (s Settings) Channels() (all []string) {
	add := func(platform string, ids ...string) {
		for _, id := range ids {
			all = append(all, platform+":"+id)
		}
	}
	add("telegram", s.Telegram.Channels...)
	add("discord", s.Discord.Channels...)
	add("slack", s.Slack.Channels...)
	add("email", s.Email.Channels...)
	add("webhook", sortedKeys(s.Webhook.Channels)...)
	return all
}

// Variables are those with keys of what messages go to.
func (s Settings) Variables() (all []string) {
	bots := s.bots()
	for _, key := range s.Keys() {
		if b, ok := bots[key.Service]; !ok || len(b.Channels) > 0 {
			all = append(all, key.Variable)
		}
	}
	return all
}

// Outside names what messages leave the machine through, in registry.Definition.Outside.
const Outside = "messages"

// Outside says which services messages go to; "" if there is none.
func (s Settings) Outside() (toolset, where, version string) {
	if !s.Live() {
		return "", "", ""
	}
	return "messaging", Outside, strings.Join(s.Channels(), "\n")
}

// Validate says what is wrong with the section.
func (s Settings) Validate() error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf("messages: "+format, args...))
		}
	}
	for name, service := range map[string]Service{"telegram": s.Telegram, "discord": s.Discord, "slack": s.Slack} {
		bad(len(service.Channels) == 0 && service.TokenEnv+service.BaseURL != "", "%s names no channels: channels: [ID, ...] says where an agent may send to", name)
		bad(slices.Contains(service.Channels, ""), "%s has a channel without an id", name)
	}
	e := s.Email
	if len(e.Channels) > 0 {
		_, _, err := net.SplitHostPort(e.Server)
		bad(err != nil, "email: server is %q; want HOST:PORT", e.Server)
		for _, address := range append([]string{e.From}, e.Channels...) {
			_, err := mail.ParseAddress(address)
			bad(err != nil, "email: %q is not an address", address)
		}
	} else {
		bad(e.Server+e.From+e.User+e.PasswordEnv != "", "email names no channels: channels: [ADDRESS, ...] says where an agent may send to")
	}
	bad(!slices.Contains([]string{"", "starttls", "tls", "none"}, e.TLS), "email: unknown tls %q (have starttls, tls, none)", e.TLS)
	for _, name := range sortedKeys(s.Webhook.Channels) {
		u, err := url.Parse(s.Webhook.Channels[name])
		bad(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https", "webhook: channel %s needs a URL", name)
	}
	slices.SortFunc(problems, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}
