package messages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"trajgen/tools/web/provider"
	"trajgen/tools/web/source"
)

// bot is a service that bots speak to.
type bot struct {
	Service        // complete
	auth    string // the header that the key stands in, with what is before it; "" where it stands in the address
	judge   provider.Judge
	who     string // the path that tells a bot who it is
}

// bots are the services, as they are without settings where those say nothing.
func (s Settings) bots() map[string]bot {
	complete := func(given Service, env, base string) Service {
		return Service{Channels: given.Channels, TokenEnv: cmp.Or(given.TokenEnv, env), BaseURL: cmp.Or(given.BaseURL, base)}
	}
	return map[string]bot{
		"telegram": {complete(s.Telegram, "TELEGRAM_BOT_TOKEN", "https://api.telegram.org"), "", refusals, "/getMe"},
		"discord":  {complete(s.Discord, "DISCORD_BOT_TOKEN", "https://discord.com/api/v10"), "Authorization:Bot ", refusals, "/users/@me"},
		"slack":    {complete(s.Slack, "SLACK_BOT_TOKEN", "https://slack.com/api"), "Authorization:Bearer ", slackSays, "/auth.test"},
	}
}

func (b bot) client(name string, c provider.Config) provider.ClientConfig {
	c.Name, c.BaseURL = name, b.BaseURL
	return provider.ClientConfig{Config: c, Variable: b.TokenEnv, Auth: b.auth, Judge: b.judge}
}

// Keys are the variables of all bots, and of the server for mail and the webhook that the settings name.
func (s Settings) Keys() (all []provider.Key) {
	bots := s.bots()
	for _, name := range sortedKeys(bots) {
		all = append(all, provider.Key{
			Toolset: "messaging", Service: name, Variable: bots[name].TokenEnv, Try: bots[name].try(name),
			Use: fmt.Sprintf("{messages: {%s: {channels: [VALUE]}}, play: {durable_turns: true}}", name),
			Ask: "Ids of the channels that an agent may send to",
		})
	}
	if s.Email.PasswordEnv != "" {
		all = append(all, provider.Key{Toolset: "messaging", Service: "email", Variable: s.Email.PasswordEnv, Try: s.Email.try})
	}
	if s.Webhook.TokenEnv != "" {
		all = append(all, provider.Key{Toolset: "messaging", Service: "webhook", Variable: s.Webhook.TokenEnv})
	}
	return all
}

// try asks who the bot is. Telegram knows no address with a malformed key in it.
func (b bot) try(name string) provider.Try {
	return func(ctx context.Context, c provider.Config) error {
		config, path := b.client(name, c), b.who
		if b.auth == "" {
			path = "/bot" + c.Key + b.who
		}
		method := http.MethodPost
		if name != "slack" { // whose statuses say nothing
			method, config.Judge = http.MethodGet, nil
		}
		_, err := provider.NewClient(config).Send(ctx, provider.Request{Method: method, Path: path})
		if failed, ok := errors.AsType[*source.Error](err); ok && b.auth == "" && failed.Class == "http_404" {
			return source.Errorf(source.Operator, source.Refused, "%s knows no bot with the key in %s", name, b.TokenEnv)
		}
		return err
	}
}

// try signs in, and sends nothing.
func (e Email) try(ctx context.Context, c provider.Config) error {
	server := email{e, c.Key}
	client, err := server.client()
	if err == nil {
		if err = client.DialWithContext(ctx); err == nil {
			return client.Close()
		}
	}
	return server.failed(ctx, err)
}
